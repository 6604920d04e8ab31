"""Hard cases written by hand: a record, what is known of it, and whom it means (name, and what singles out one)."""

from __future__ import annotations

Case = tuple[str, dict[str, str], tuple[str, str] | None]

HARD: tuple[Case, ...] = (
    # A person, a ship and a book of one name.
    ("William Ashcombe", {"type": "ship"}, ("William Ashcombe", "ship")),
    ("William Ashcombe", {"type": "ship", "founded": "1870"}, ("William Ashcombe", "ship")),
    ("SS Margaret Thornbury", {"type": "ship", "founded": "1881"}, ("Margaret Thornbury", "ship")),
    ("Edmund Fairweather (ship)", {"type": "Q11446", "founded": "1892"}, ("Edmund Fairweather", "ship")),
    ("Harriet Pemberley", {"type": "Q11446"}, ("Harriet Pemberley", "ship")),
    ("The Life of Harriet Pemberley", {"type": "literary work"}, ("The Life of Harriet Pemberley", "")),
    ("Life of Edmund Fairweather, The", {"type": "literary work"}, ("The Life of Edmund Fairweather", "")),
    # A town, its university, its people and its firm.
    ("Ashcombe", {"type": "town"}, ("Ashcombe", "town")),
    ("Ashcombe", {"type": "town", "founded": "1272"}, ("Ashcombe", "town")),
    ("University of Ashcombe", {"type": "university"}, ("University of Ashcombe", "")),
    ("Ashcombe University", {"type": "university", "founded": "1828"}, ("University of Ashcombe", "")),
    ("Ashcombe and Sons", {"type": "company"}, ("Ashcombe & Sons", "")),
    ("Ashcombe & Sons Ltd.", {"type": "company", "founded": "1850"}, ("Ashcombe & Sons", "")),
    ("Ashcombe & Daughters", {"type": "company", "founded": "1999"}, None),
    ("Muellner-Werke", {"type": "company", "founded": "1863"}, ("Müllner Werke", "")),
    ("Kaersgaard Moebler", {"type": "company", "founded": "1889"}, ("Kærsgaard Møbler", "")),
    ("Zuniga Hnos.", {"type": "company", "founded": "1915"}, ("Zúñiga Hermanos", "")),
    ("Blackwood Press", {"type": "company"}, ("Blackwood Press", "")),
    ("Blackwood", {"type": "town"}, ("Blackwood", "town")),
    ("Niederweissbach", {"type": "town"}, ("Niederweißbach", "")),
    ("Harburg a. d. Linne", {"type": "town", "founded": "1190"}, ("Harburg an der Linne", "")),
    ("Harburg", {"type": "town", "founded": "1955"}, None),
    # Numbers make the difference.
    ("Meridian 7", {"type": "ship"}, ("Meridian 7", "")),
    ("Meridian 11", {"type": "ship", "founded": "1971"}, ("Meridian 11", "")),
    ("Meridian 13", {"type": "ship"}, None),
    ("Meridian 21", {"type": "ship", "founded": "1990"}, None),
    ("Casimir III of Thornbury", {"type": "human"}, ("Casimir III of Thornbury", "")),
    ("Casimir IV of Thornbury", {}, ("Casimir IV of Thornbury", "")),
    ("Casimir VI of Thornbury", {}, None),
    # One letter, another person.
    ("Edmund Fairwether", {"born": "1650"}, None),
    ("Jonathan Blackwell", {"born": "1850"}, None),
    ("Dorothy Whitlock-Hughes", {"born": "1901"}, None),
    ("Sergei Chernyshevsky", {"born": "1828"}, None),
    ("Petra Chernyshova", {"born": "1990"}, None),
    # Names in other orders, scripts and habits.
    ("Haruki Takeda", {"type": "human"}, ("Takeda Haruki", "")),
    ("TAKEDA, Haruki", {"type": "human"}, ("Takeda Haruki", "")),
    ("Wenhao Li", {"type": "human"}, ("Li Wenhao", "")),
    ("陈秀兰", {"type": "human"}, ("Chen Xiulan", "")),
    ("岡部静子", {}, ("Okabe Shizuko", "")),
    ("Νίκος Καλλίμαχος", {}, ("Nikos Kallimachos", "")),
    ("Ioannis Papagiannis", {"born": "1699"}, None),
    ("Conan Doyle, Arthur, Sir", {"born": "1859-05-22"}, None),
    ("", {"born": "1859"}, None),
    ("???", {}, None),
    ("X", {}, None),
)
