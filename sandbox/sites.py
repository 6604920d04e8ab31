"""What the pretended sites say: invented firms in several languages, the same for the same number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tongue:
    """How one language's sites are written and encoded; ``declared`` is where the charset is named."""

    language: str
    encoding: str
    declared: str
    title: str
    description: str
    about: str
    offer: str
    closing: str
    goods: tuple[str, ...]


TONGUES = (
    Tongue(
        "en",
        "utf-8",
        "header",
        "{firm} – craft roastery in {town}",
        "{firm} roasts and ships coffee from {town}.",
        "{firm} was founded in {town} in {year}. Twelve people roast coffee there every morning. "
        "Each batch is tasted before it leaves the house.",
        "Our shop offers {goods}. Orders placed before noon leave the same day.",
        "Write to us or visit the roastery. We answer within a day.",
        ("espresso blends", "filter coffee", "grinders", "tasting courses"),
    ),
    Tongue(
        "de",
        "iso-8859-1",
        "header",
        "{firm} – Tischlerei in {town}",
        "{firm} baut Möbel nach Maß in {town}.",
        "{firm} arbeitet seit {year} in {town}. Wir fertigen Möbel aus heimischen Hölzern. "
        "Jedes Stück wird für seinen Raum geplant.",
        "Zu unserem Angebot gehören {goods}. Die Lieferung übernehmen wir selbst.",
        "Besuchen Sie unsere Ausstellung. Wir freuen uns über Ihre Anfrage.",
        ("Küchen", "Bücherregale", "Türen", "Tische aus Eiche"),
    ),
    Tongue(
        "fr",
        "windows-1252",
        "meta",
        "{firm} – maraîcher à {town}",
        "{firm} cultive des légumes près de {town}.",
        "{firm} cultive depuis {year} des légumes de saison à {town}. L’exploitation compte cinq hectares. "
        "Rien n’est récolté avant d’être mûr.",
        "Nous proposons {goods}. Les paniers coûtent 18 € et se retirent le vendredi.",
        "La ferme est ouverte le samedi. Écrivez-nous pour réserver.",
        ("des paniers de légumes", "des œufs", "des confitures", "des visites guidées"),
    ),
    Tongue(
        "ja",
        "shift_jis",
        "meta",
        "{firm}｜{town}の陶器工房",
        "{firm}は{town}で器を作る工房です。",
        "{firm}は{year}年に{town}で始まりました。土は近くの山から採ります。すべての器を手で仕上げています。",
        "店では{goods}を扱っています。注文は一週間で届きます。",
        "工房の見学は予約制です。お気軽にご連絡ください。",
        ("茶碗", "湯呑み", "花器", "陶芸教室"),
    ),
    Tongue(
        "zh",
        "gb18030",
        "meta",
        "{firm} - {town}茶叶店",
        "{firm}在{town}经营茶叶。",
        "{firm}于{year}年在{town}开业。我们直接从茶农那里收购茶叶。每一批茶都经过品尝。",
        "本店供应{goods}。订单当天发货。",
        "欢迎到店品茶。我们会在一天内回复。",
        ("绿茶", "红茶", "茶具", "品茶课程"),
    ),
    Tongue(
        "es",
        "utf-8",
        "nowhere",
        "{firm}: taller de bicicletas en {town}",
        "{firm} repara y monta bicicletas en {town}.",
        "{firm} abrió en {town} en {year}. El taller repara bicicletas de todas las épocas. "
        "Cada reparación lleva un año de garantía.",
        "Ofrecemos {goods}. La revisión pequeña está lista en un día.",
        "El taller abre también los sábados por la mañana. ¡Pasa a vernos!",
        ("revisiones", "ruedas a medida", "alquiler", "cursos de mecánica"),
    ),
    Tongue(
        "en",
        "utf-16",
        "bom",
        "{firm} – surveying and maps, {town}",
        "{firm} measures land and draws maps around {town}.",
        "{firm} has measured land near {town} since {year}. Its maps are used by farmers and town halls. "
        "Every survey is checked twice in the field.",
        "The office offers {goods}. A quote takes two working days.",
        "Call the office for an appointment. Old maps can be viewed on request.",
        ("land surveys", "printed maps", "height profiles", "map restoration"),
    ),
)
TOWNS = {
    "en": ("Harbury", "Millbrook", "Eastleigh"),
    "de": ("Münster", "Görlitz", "Fürth"),
    "fr": ("Nîmes", "Besançon", "Orléans"),
    "ja": ("京都", "金沢", "有田"),
    "zh": ("杭州", "成都", "厦门"),
    "es": ("León", "Cádiz", "Málaga"),
}
NAMES = ("Aldona", "Brivio", "Celandine", "Dorval", "Eskil", "Fennimore", "Galanis", "Hollis")


@dataclass(frozen=True)
class Site:
    """One pretended site, complete."""

    number: int
    tongue: Tongue
    firm: str
    town: str
    year: int

    def words(self, pattern: str) -> str:
        """``pattern`` with this site's names in it."""
        goods = ", ".join(self.tongue.goods)
        return pattern.format(firm=self.firm, town=self.town, year=self.year, goods=goods)


def site(number: int) -> Site:
    """The site of that number: the same in every process and on every day."""
    tongue = TONGUES[number % len(TONGUES)]
    towns = TOWNS[tongue.language]
    firm = f"{NAMES[number * 5 % len(NAMES)]} {number}"
    return Site(number, tongue, firm, towns[number // 7 % len(towns)], 1950 + number * 13 % 70)
