-- Why a page's text may be wrong; null: no reason to think so. Documents read before this have no doubts either way.
alter table document_pages add column doubt text;

-- The doubts of all its pages, [{"page": 3, "doubt": "…"}]; null until the document is read.
alter table documents add column doubts jsonb,
    add constraint doubts_are_a_list check (jsonb_typeof(doubts) = 'array');
