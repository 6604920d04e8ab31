"""Pages that came with status 200 and are none: errors, empty shells, parked names. Doubts, not verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from actors.website.reader import Reading
from actors.website.scripts import first_target, leaps, may_lead_on

# A real page says more than this, and may speak of errors.
SHORT = 700
# A page that sends its readers on says no more than this.
LITTLE = 400
# Less than a sentence: the shell of a page.
NEXT_TO_NOTHING = 80
_NOT_FOUND = re.compile(
    r"""\b(?:404|410|403|500|502|503|504)\b[\s:|–—-]*(?:error|not\ found|page|gone|forbidden|fehler|erreur|errore?
    |seite|internal|bad|service)
    |\b(?:error|fehler|erreur|errore|http|status|fout|fel|chyba|błąd|hata)\s*(?:code)?[\s:#-]*(?:404|410|403|5\d\d)\b
    |^\W*(?:404|410|403|500|502|503|504)\W*$
    |\b(?:page|file|site|content|product|article|resource|url|document|link)\b.{0,40}\b(?:not\ found|(?:could
    |can)\s?(?:not|n[’']t)\ be\ found|does\ not\ exist|doesn[’']t\ exist|no\ longer\ (?:exists?|available|here)
    |not\ available|is\ gone|is\ missing|has\ been\ (?:removed|moved|deleted))
    |^\W*not\ found\W*$|\b(?:oops|whoops|uh[\ -]oh|sorry)\b.{0,60}\b(?:page|find|found|wrong|exist)
    |\b(?:can[’']t|cannot|couldn[’']t|could\ not|unable\ to)\ (?:find|locate)\b.{0,40}\b(?:page|looking|site|file
    |product)
    |nicht\ gefunden|nicht\ (?:mehr\ )?(?:vorhanden|verfügbar)|existiert\ (?:leider\ )?nicht|introuvable
    |n[’']existe\ (?:pas|plus)|non\ trouvée?
    |no\ (?:se\ )?(?:ha\ (?:sido\ )?)?encontrad[oa]|no\ existe|no\ encontrad[oa]|não\ (?:foi\ )?encontrad[oa]
    |não\ existe|non\ (?:è\ stata\ )?trovat[oa]|non\ esiste
    |niet\ gevonden|bestaat\ niet|nie\ (?:została\ )?znaleziono|nie\ istnieje|nenalezen|neexistuje|hittades\ inte
    |finns\ inte|ikke\ fundet|ikke\ funnet|ei\ löydy|ei\ löytynyt|bulunamadı|nem\ található
    |не\ найден|не\ существует|не\ знайдено|見つかりません|ページが存在しません
    |找不到|不存在|未找到|찾을\ 수\ 없|δεν\ βρέθηκε|غير\ موجود
    |לא\ נמצא""",
    re.IGNORECASE | re.VERBOSE,
)
_BROKEN = re.compile(
    r"""fatal\ error\b.{0,200}\bon\ line\b|\buncaught\ (?:\w*error|\w*exception)\b
    |SQLSTATE\[|stack\ trace:|traceback\ \(most\ recent
    |error\ establishing\ a\ database\ connection|database\ (?:connection\ )?error|(?:could\ not|can[’']t|unable\ to
    |failed\ to)\ connect\ to\ (?:the\ )?(?:database|mysql|server|local\ mysql)
    |internal\ server\ error|bad\ gateway|gateway\ time-?out|service\ (?:temporarily\ )?unavailable
    |bandwidth\ limit\ exceeded
    |(?:an?\ )?(?:unexpected|unknown|internal|application|server|runtime|technical)\ error\b|something\ went\ wrong
    |\bexception\ in\ thread|\bnull\ ?pointer\ ?exception
    |ein\ (?:technischer\ )?fehler\ ist\ aufgetreten|une\ erreur\ (?:est\ survenue|s[’']est\ produite)
    |ha\ ocurrido\ un\ error|si\ è\ verificato\ un\ errore|произошла\ ошибка
    |(?:parse|syntax)\ error\b.{0,200}\bon\ line\b|\bwarning:.{0,200}\bon\ line\b|\bORA-\d{5}\b""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_EMPTY = re.compile(
    r"""domain(?:\ name)?\b.{0,60}\b(?:for\ sale|is\ parked|may\ be\ for\ sale|zu\ verkaufen|à\ vendre|has\ expired
    |is\ registered|abgelaufen)|(?:buy|purchase)\ this\ domain|parked\ (?:domain|page|free)
    |diese\ domain\ (?:steht\ zum|ist)
    |(?:account|website|site)\ (?:has\ been\ |is\ )?(?:suspended|expired|disabled)|under\ construction|coming\ soon
    |im\ aufbau|en\ construcción|en\ construction|under\ maintenance|down\ for\ maintenance|wartungs(?:arbeiten
    |modus)|en\ maintenance
    |(?:welcome\ to\ nginx|apache2?\ (?:\w+\ )?default\ page|it\ works!|iis\ windows\ server
    |default\ web\ (?:site\ )?page|future\ home\ of)
    |(?:no|0|zero)\ (?:products?|items?|results?|articles?|listings?|matches)\b.{0,40}(?:found|match|available|here
    |$)|keine\ (?:produkte|artikel|ergebnisse|treffer)|aucun\ (?:produit|résultat|article)|ning[úu]n\ (?:producto
    |resultado)|nessun\ (?:prodotto|risultato)|(?:your\ )?(?:cart|basket|shop|store)\ is\ empty|currently\ (?:empty
    |closed|unavailable)
    |access\ denied|request\ (?:was\ )?blocked|just\ a\ moment|checking\ your\ browser
    |verify\ (?:that\ )?you\ are\ (?:a\ )?human|are\ you\ a\ robot|attention\ required|enable\ (?:cookies
    |javascript)""",
    re.IGNORECASE | re.VERBOSE,
)


# What a page says that will be another one in a moment.
_LEADING = re.compile(
    r"""\bredirect(?:ing|ed)\b|\bwill\ be\ (?:forwarded|taken|sent)\b|\bforwarding\b|\bhas\ moved\b|please\ wait
    |weitergeleitet|weiterleitung|bitte\ warten|redirig[ée]|redirection|veuillez\ patienter|redirigid[oa]|redirigiendo
    |redirecion|reindirizza|doorgestuurd|przekierow|перенаправл|подождите|リダイレクト|正在跳转|重定向""",
    re.IGNORECASE | re.VERBOSE,
)


def looks_like_error(title: str, headings: Sequence[str], text: str) -> bool:
    """Whether a short page says, where pages say what they are, that it is not the page that was meant."""
    if len(text) > SHORT:
        return False
    places = [title, *headings[:3], text[:400]]
    if any(_NOT_FOUND.search(place) for place in places[:-1]):
        return True
    first = text[:160].replace("\n", " ")
    return bool(_NOT_FOUND.search(first) or any(_BROKEN.search(place) or _EMPTY.search(place) for place in places))


def jump_of(reading: Reading) -> str:
    """The address that the page's scripts lead to at once; empty if they do not, or if that is not certain.

    Of a page with text only what stands in no function counts; a page without any leads wherever it can.
    """
    if not reading.lines:
        return first_target(reading.script)
    short = _length(reading) < LITTLE
    return next((leap.target for leap in leaps(reading.script) if leap.target and (leap.bare or short)), "")


def seems_to_need_scripts(reading: Reading) -> bool:
    """Whether a browser would probably show more, or something else."""
    length = _length(reading)
    if any(leaps(reading.script)) or (length < LITTLE and may_lead_on(reading.script)):
        return True
    if reading.scripts and length < LITTLE and _LEADING.search(" ".join([reading.title, *reading.lines])):
        return True
    return reading.scripts > 0 and length < NEXT_TO_NOTHING and not reading.headings and not reading.frames


def _length(reading: Reading) -> int:
    return sum(map(len, reading.lines))
