"""What stands beside a price, in the languages of the markets: roles of amounts, quantities, counts, dates, grades."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from babel import Locale

_LANGUAGES = [
    "en",
    "de",
    "fr",
    "es",
    "it",
    "pt",
    "nl",
    "sv",
    "da",
    "nb",
    "fi",
    "is",
    "pl",
    "cs",
    "sk",
    "hu",
    "ro",
    "bg",
    "ru",
    "uk",
    "tr",
    "id",
]
# Italian and Portuguese for September: in a market's text it is a set.
_NOT_MONTHS = frozenset({"set"})

# The role of the amount that follows.
BEFORE = {
    "was": """was|were|previously|formerly|originally|original price|regular price|regularly|reg|list price|
        retail|retail price|rrp|msrp|srp|compare at|instead of|before|statt|uvp|vorher|früher|bisher|war|
        au lieu de|avant|prix conseillé|prix barré|antes|en lugar de|invece di|anziché|prima|adviesprijs|van|
        in plaats van|förr|tidigare|ord|ordinarie|ord pris|før|førpris|zamiast|poprzednia cena|było|původně|
        původní cena|místo|eredeti ár|helyett|în loc de|вместо|было|раньше|старая цена|eski fiyat|定価|通常価格|
        参考価格|原价|原價|정가""",
    "now": """now|only|today|sale price|our price|your price|final price|deal price|special|promo|jetzt|nur|
        neuer preis|aktionspreis|angebot|angebotspreis|maintenant|à présent|seulement|prix soldé|ahora|solo|
        sólo|oferta|agora|apenas|por apenas|ora|adesso|offerta|nu|voor|slechts|endast|kun|teraz|tylko|nyní|
        jen|csak|acum|сейчас|теперь|только|şimdi|sadece|今だけ|特価|セール価格|现价|特价|할인가""",
    "sold": """sold|sold for|sold at|sold price|realized|realised|price realized|price realised|realized price|hammer|
        hammer price|winning bid|final bid|won for|current bid|current price|high bid|highest bid|top bid|verkauft|
        verkauft für|zuschlag|zuschlagspreis|hammerpreis|höchstgebot|aktuelles gebot|adjugé|vendu|prix réalisé|
        prix marteau|enchère actuelle|offre actuelle|vendido|remate|precio de remate|oferta actual|puja actual|
        lance atual|venduto|aggiudicato|offerta attuale|verkocht|huidig bod|hamerprijs|såld|såld för|slutpris|klubbat|
        solgt|hammerslag|nuværende bud|høyeste bud|sprzedano|aktualna oferta|prodáno|продано|текущая ставка|落札|
        落札価格|現在価格|現在|成交价""",
    "start": """starting bid|starting price|start price|start|opening bid|opening|minimum bid|min bid|reserve|
        startpreis|startgebot|ausruf|ausrufpreis|mindestgebot|mise à prix|prix de départ|precio de salida|
        precio inicial|salida|lance inicial|base d'asta|prezzo base|startbod|utropspris|utrop|startpris|
        cena wywoławcza|vyvolávací cena|kikiáltási ár|стартовая цена|старт|начальная цена|開始価格|起拍价""",
    "estimate": """estimate|estimates|estimated|est|estimation|estimated value|schätzpreis|schätzung|schätzwert|taxe|
        estimación|estimado|valor estimado|estimativa|stima|schatting|richtprijs|värdering|vurdering|wycena|szacunek|
        estymacja|odhad|оценка|эстимейт|予想価格|評価額|估价""",
    "saved": """save|you save|saving|savings|discount|coupon|rabatt|ersparnis|sie sparen|sparen|du sparst|économisez|
        remise|ahorra|ahorras|descuento|economize|risparmi|sconto|korting|bespaar|spara|spar|oszczędzasz|скидка|
        экономия""",
    "open": """from|starting at|starting from|as low as|up to|under|over|ab|bis zu|dès|à partir de|jusqu'à|desde|
        a partir de|hasta|até|a partire da|fino a|vanaf|från|upp till|fra|op til|od|de la|от|до""",
    "other": """bid increment|increment|next bid|deposit|down payment|monthly|per month|insured for|insurance|
        gebotsschritt|anzahlung|acompte|入札単位|即決|即決価格|buy it now|buy now|sofortkauf|sofort-kaufen|sofortkaufen|
        achat immédiat|cómpralo ya|compralo subito|direct kopen|köp nu|köp direkt|kup teraz""",
}
# The role of the amount that follows directly, else of the one before.
EITHER = {
    "about": """approximately|approximate|approx|appx|about|around|roughly|circa|ca|ungefähr|etwa|rund|zirka|cirka|
        environ|env|approximativement|aproximadamente|aprox|alrededor de|unos|cerca de|ongeveer|ungefär|omtrent|
        omkring|noin|około|ok|přibližně|asi|zhruba|körülbelül|kb|aproximativ|около|примерно|приблизительно|близько|
        yaklaşık|sekitar|約|约|大约|およそ|くらい|前後|左右|약""",
    "post": """shipping|ship|shipping & handling|s&h|p&p|p & p|postage|delivery|handling|freight|versand|
        versandkosten|porto|lieferung|livraison|frais de port|port|expédition|envío|envio|gastos de envío|
        frete|portes|spedizione|spese di spedizione|verzending|verzendkosten|bezorging|frakt|fragt|levering|
        toimitus|toimituskulut|przesyłka|wysyłka|dostawa|doprava|poštovné|szállítás|livrare|transport|
        доставка|пересылка|kargo|ongkir|送料|運費|运费|배송비""",
    "fee": """tax|sales tax|fee|fees|premium|buyer's premium|buyers premium|bp|commission|aufgeld|gebühr|
        frais|comisión|commissione|opłata|комиссия|手数料""",
    "gross": """inc vat|incl vat|including vat|inc tax|incl tax|tax included|tax incl|vat included|inc gst|incl gst|
        with tax|inkl|inkl mwst|incl btw|brutto|ttc|iva incluido|iva incl|iva inclusa|iva incluída|inkl moms|
        z vat|vč dph|s dph|с ндс|kdv dahil|税込|税込み|含税""",
    "net": """ex vat|excl vat|excluding vat|ex tax|excl tax|before tax|ex gst|plus vat|plus tax|zzgl mwst|netto|
        exkl mwst|ht|hors taxe|hors taxes|sin iva|iva esclusa|excl btw|exkl moms|ex moms|bez vat|bez dph|без ндс|
        kdv hariç|税別|税抜|税抜き|不含税""",
    "each": """each|ea|apiece|a piece|per piece|per coin|per item|per unit|per oz|per gram|je|pro stück|
        pro münze|stückpreis|la pièce|l'unité|cada uno|la unidad|cada|cadauno|l'uno|per stuk|per styck|styck|
        pr stk|stykket|za sztukę|za kus|darabja|за штуку|за шт""",
    "other": "face value|face|over spot|above spot|over melt|nennwert|nominal|valeur faciale|valor facial",
    "off": "off|reduction|reduziert|de réduction|de descuento|di sconto|zniżki|引き",
}
# Known, and of no meaning for the amount.
_NOTHING = """price|prices|total|item price|preis|gesamtpreis|festpreis|fp|vb|vhb|verhandlungsbasis|prix|
    prix fixe|precio|preço|prezzo|prijs|pris|cena|ár|preț|цена|ціна|fiyat|fiyatı|harga|価格|价格|가격|bid|bids|
    gebot|gebote|offer|obo|or best offer|best offer|ono|negotiable|firm|the|at|for|is|just|vat|mwst|ust|gst|
    iva|btw|moms|dph|ндс|kdv|incl|inc|included|including|asking|ask|and|und|et|sale|current|free|gratis|
    kostenlos"""
_POST_FREE = """free shipping|free delivery|free postage|free p&p|free returns|free local pickup|
    free standard shipping|free economy shipping|free international shipping|shipping included|
    postage included|delivery included|incl shipping|including shipping|includes shipping|inc postage|
    incl postage|including postage|plus shipping|plus postage|gratisversand|kostenloser versand|
    kostenlose lieferung|gratis versand|versandkostenfrei|inkl versand|inkl porto|inklusive versand|
    zzgl versand|zzgl versandkosten|zzgl porto|plus versand|versand inklusive|livraison gratuite|port offert|
    port compris|livraison incluse|envío gratis|envío gratuito|envío incluido|envio grátis|frete grátis|
    spedizione gratuita|spedizione gratis|spedizione inclusa|gratis verzending|excl verzendkosten|
    incl verzending|fri frakt|gratis frakt|inkl frakt|exkl frakt|fraktfritt|fri fragt|darmowa dostawa|
    darmowa wysyłka|doprava zdarma|ingyenes szállítás|бесплатная доставка|доставка бесплатно|ücretsiz kargo|
    送料無料|送料込み|送料込|包邮|무료배송"""
_JOIN = "to|till|until|bis|à|a|hasta|até|tot|til|do|až|до|から"
_THING = """pcs|pc|pieces|piece|stk|stück|stücke|st|szt|sztuk|sztuki|шт|штук|pièces|pièce|piezas|pieza|peças|
    peça|pz|pezzi|pezzo|stuks|stykker|coins|coin|münzen|münze|monnaies|monedas|monete|moedas|munten|mynt|
    mønter|monet|monety|mincí|монет|монеты|units|unit|items|notes|banknotes|stamps|cards|medals|tokens|bars|
    sets|rolls|ks|db|adet|buah|keping|pack|er-set|er set|er-pack|er pack|er-lot|
    枚セット|枚組|枚|個セット|個|点セット|点|本|セット|
    张|个|개|장|매"""
_BUNDLE = """set|pack|group|bundle|box|bag|roll|tube|case|collection|quantity|qty|anzahl|menge|konvolut|posten|partie|
    satz|sett|zestaw|sada|комплект|набор|cantidad|cantità|quantité|antal|aantal|ilość|počet|paquete|conjunto|ensemble|
    lot|los|lote|lotto|лот|partij|parti"""
_OF = "of|de|à|von|van|da|di|mit|aus|med|af|z|po|из"
_FOR = "for|für|pour|por|per|voor|för|za|за"
_COUNT = """bid|bids|gebot|gebote|geboten|enchère|enchères|offres|offre|puja|pujas|ofertas|lances|lance|
    offerte|biedingen|bod|bud|ofert|oferty|licytacji|příhozů|ставок|ставки|ставка|teklif|件の入札|件|入札|watchers|
    watcher|watching|beobachter|views|visits|aufrufe|available|avail|in stock|left|remaining|sold|verfügbar|
    auf lager|vorrätig|verkauft|übrig|disponible|disponibles|en stock|restants|vendus|vendidos|disponíveis|
    disponibili|venduti|beschikbaar|op voorraad|verkocht|i lager|på lager|kvar|sålda|dostępnych|skladem|
    в наличии|продано|stok|reviews|review|ratings|bewertungen|stars|likes|followers|photos|bidders|bieter|
    people|in cart|offers|more than|stück verfügbar|stück auf lager|pcs available|pieces available|
    coins available"""
_SPAN = """d|h|m|s|min|mins|minute|minutes|sec|secs|hr|hrs|hour|hours|day|days|week|weeks|month|months|year|
    years|std|stunde|stunden|minuten|tag|tage|tagen|woche|wochen|monate|jahre|jour|jours|heure|heures|
    semaines|mois|ans|día|días|horas|minutos|semanas|meses|años|giorni|ore|dagen|uur|weken|dagar|timmar|dage|
    timer|dager|dni|godz|hodin|дней|дня|день|часов|часа|час|мин|日|時間|分|天|小时"""
# What stands behind the bar of a price that is paid again and again; "h" and "m" are there, too.
_INSTALMENT = "mo|mth|mon|monat|monats|jahr|mois|mes|mês|mese|maand|mnd|mån|md|mies|měs|wk|yr|an|año|anno|ano"
_SIZE = "mm|cm|km|in|inch|g|gr|gm|gram|grams|kg|mg|oz|ozt|toz|lb|lbs|carat|karat|kt|k|fine|th|st|nd|rd"
_ID = """lot|lot no|lot nr|lot number|los|los nr|losnr|item|item no|article|artikel|artikelnr|art|art nr|
    art no|ref|sku|id|auction|auktion|cert|no|nr|num|number|nº|n°|lote|lotto|kavel|objekt|položka|pozycja|лот|
    km|cat|page|seite|vol|order|inv|pos|krause|y|ms|pr|pf|au|xf|ef|vf|vg|ag|sp|pcgs|ngc|anacs|icg|f|g"""
_NUMBERS = {"pair": 2, "paar": 2, "paire": 2, "dozen": 12, "dutzend": 12, "douzaine": 12}
# Rounded by whoever wrote it: the amount is approximate. Lakh and its like are how people count: exact.
ROUND = {
    **dict.fromkeys(("k", "tsd", "thousand", "tausend", "tys", "tis", "тыс"), 1_000),
    **dict.fromkeys(("m", "mm", "mn", "mio", "mln", "million", "millions", "millionen", "millones", "млн"), 1_000_000),
    **dict.fromkeys(("b", "bn", "mrd", "mld", "billion", "млрд"), 1_000_000_000),
}
EXACT = {
    **dict.fromkeys(("lakh", "lakhs", "lac", "lacs"), 100_000),
    **dict.fromkeys(("crore", "crores", "cr"), 10_000_000),
    **{"千": 1_000, "万": 10_000, "萬": 10_000, "億": 100_000_000, "亿": 100_000_000},
    **{"천": 1_000, "만": 10_000, "억": 100_000_000},
}


def _words(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"\s+", " ", word.strip()) for word in text.split("|")) - {""}


def _phrases(groups: Mapping[str, str]) -> dict[str, str]:
    return {word: group for group, words in groups.items() for word in _words(words)}


BEFORE_WORDS, EITHER_WORDS = _phrases(BEFORE), _phrases(EITHER)
NOTHING, POST_FREE, JOIN, THING = _words(_NOTHING), _words(_POST_FREE), _words(_JOIN), _words(_THING)
BUNDLE, OF, FOR, COUNT = _words(_BUNDLE), _words(_OF), _words(_FOR), _words(_COUNT)
SPAN, SIZE, ID, NUMBERS = _words(_SPAN), _words(_SIZE), _words(_ID), _NUMBERS
INSTALMENT = _words(_INSTALMENT)
ALL = frozenset().union(
    BEFORE_WORDS, EITHER_WORDS, NOTHING, POST_FREE, JOIN, THING, BUNDLE, OF, FOR, COUNT, SPAN, SIZE, ID, ROUND, EXACT
)


@cache
def months() -> frozenset[str]:
    """Names of months in the languages of the markets, long and short, in lower case without a point."""
    found = {"sept"}
    for language in _LANGUAGES:
        names = Locale(language).months
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                found |= {str(name).lower().rstrip(".") for name in names[context][width].values()}
    return frozenset(name for name in found if name[:1].isalpha()) - _NOT_MONTHS
