"""Names of the people that the pretended Wikidata knows, in the spellings of several languages. All invented."""

from __future__ import annotations

# English, Russian and German spellings, as an English, a Russian and a German catalogue would have them.
SLAVIC_GIVEN = (
    ("Sergei", "Сергей", "Sergej"),
    ("Mikhail", "Михаил", "Michail"),
    ("Yelena", "Елена", "Jelena"),
    ("Pyotr", "Пётр", "Pjotr"),
    ("Nadezhda", "Надежда", "Nadeschda"),
    ("Yevgeny", "Евгений", "Jewgeni"),
    ("Zinaida", "Зинаида", "Sinaida"),
    ("Vasily", "Василий", "Wassili"),
)
SLAVIC_FAMILY = (
    ("Chernyshov", "Чернышов", "Tschernyschow"),
    ("Shcherbatin", "Щербатин", "Schtscherbatin"),
    ("Zhukovin", "Жуковин", "Schukowin"),
    ("Vasnetsky", "Васнецкий", "Wasnezki"),
    ("Yakushev", "Якушев", "Jakuschew"),
    ("Khvostenko", "Хвостенко", "Chwostenko"),
    ("Tsvetayeva", "Цветаева", "Zwetajewa"),
    ("Oblomov", "Обломов", "Oblomow"),
    ("Dyachenko", "Дьяченко", "Djatschenko"),
    ("Rozhdestvin", "Рождествин", "Roschdestwin"),
)
GREEK_GIVEN = (("Nikos", "Νίκος"), ("Eleni", "Ελένη"), ("Yannis", "Γιάννης"), ("Theodora", "Θεοδώρα"))
GREEK_FAMILY = (
    ("Kallimachos", "Καλλίμαχος"),
    ("Papagiannis", "Παπαγιάννης"),
    ("Xenakidis", "Ξενακίδης"),
    ("Chatzopoulou", "Χατζοπούλου"),
)
EAST_ASIAN = (
    ("Li Wenhao", "李文豪", "zh"),
    ("Chen Xiulan", "陈秀兰", "zh"),
    ("Zhao Guoping", "赵国平", "zh"),
    ("Sun Meiling", "孙美玲", "zh"),
    ("Takeda Haruki", "武田春樹", "ja"),
    ("Okabe Shizuko", "岡部静子", "ja"),
    ("Mizuno Kenzo", "水野健三", "ja"),
    ("Arakawa Fumiko", "荒川文子", "ja"),
)
WESTERN = {
    "de": (
        ("Jörg", "Käthe", "Günther", "Friederike", "Ansgar", "Liselotte"),
        ("Müllner", "Großkopf", "Brückner-Veit", "Schäffling", "Öhlenschläger", "Weißenfels", "Hintermoser"),
    ),
    "fr": (
        ("Étienne", "Geneviève", "Théophile", "Hélène", "Aurélien"),
        ("Beaufortin", "Lacombe-Rey", "d'Aubrécourt", "Châtelroux", "Maisonnier", "Le Gwennec"),
    ),
    "es": (
        ("José Ángel", "Inés", "Íñigo", "María Concepción", "Tomás"),
        ("Ibáñez Roldán", "Peñalver", "Zúñiga", "Arzallus", "Quiñonero"),
    ),
    "pl": (("Stanisław", "Małgorzata", "Łukasz", "Zdzisława"), ("Wojciechowicz", "Żeromczyk", "Dąbrowicki", "Ślusarz")),
    "da": (("Søren", "Åse", "Jørgen", "Kirsten"), ("Østerlund", "Bjørnholt", "Nørregaard-Lind", "Kærsgaard")),
    "en": (
        ("William", "Margaret", "Edmund", "Harriet", "Jonathan", "Beatrice", "Percival", "Dorothy"),
        ("Ashcombe", "Thornbury", "Fairweather", "Pemberley", "MacAlister", "O'Hanrahan", "Whitlocke", "Blackwood"),
    ),
}
OCCUPATIONS = (
    "painter",
    "chemist",
    "composer",
    "botanist",
    "architect",
    "novelist",
    "engineer",
    "astronomer",
    "photographer",
    "physician",
    "cartographer",
    "sculptor",
)
NATIONS = {
    "ru": "Russian",
    "el": "Greek",
    "zh": "Chinese",
    "ja": "Japanese",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pl": "Polish",
    "da": "Danish",
    "en": "British",
}
