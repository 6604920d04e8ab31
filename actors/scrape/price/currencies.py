"""Which currencies a sign, a code or a word may mean. Codes and decimals are Babel's (CLDR); signs are listed here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from babel.numbers import get_currency_precision, list_currencies

CODES = frozenset(list_currencies())
# Codes that are words too: believed in upper case only. The others may be written in any case.
_WORDS = frozenset(
    [
        "ALL",
        "ANG",
        "BAM",
        "CUP",
        "GEL",
        "LAK",
        "MAD",
        "MOP",
        "PEN",
        "RON",
        "SOS",
        "STD",
        "TOP",
        "TRY",
        "VEB",
        "XXX",
        "YUM",
    ]
)
_DOLLARS = frozenset(
    [
        "USD",
        "CAD",
        "AUD",
        "NZD",
        "HKD",
        "SGD",
        "TWD",
        "MXN",
        "ARS",
        "CLP",
        "COP",
        "UYU",
        "DOP",
        "CUP",
        "BBD",
        "BMD",
        "BND",
        "BSD",
        "BZD",
        "FJD",
        "GYD",
        "JMD",
        "KYD",
        "LRD",
        "NAD",
        "SBD",
        "SRD",
        "TTD",
        "XCD",
    ]
)


@dataclass(frozen=True)
class Mark:
    """What a text says about its currency: one of ``any_of``, and ``alone`` if nothing else decides."""

    any_of: frozenset[str]
    alone: str | None = None
    minor: bool = False  # a hundredth: pence, cents
    thousands: bool = False  # k€

    def resolve(self, own: str | None) -> str | None:
        """The currency, given the row's or the market's own; None if a reader cannot know it."""
        return own if own in self.any_of else self.alone

    def __and__(self, other: Mark) -> Mark:
        both = self.any_of & other.any_of
        alone = next((mark.alone for mark in (self, other) if mark.alone in both), None)
        if alone is None and len(both) == 1:
            (alone,) = both
        return Mark(both, alone, self.minor or other.minor, self.thousands or other.thousands)


def _sure(code: str) -> Mark:
    return Mark(frozenset({code}), code)


def _table(text: str) -> dict[str, Mark]:
    """``sign CODE`` is sure; of several codes, or one with ``?``, the market decides; ``!`` is meant if it does not."""
    marks = {}
    for entry in text.replace("\n", "|").split("|"):
        sign, *codes = entry.split()
        alone = codes[0] if len(codes) == 1 else next((code for code in codes if "!" in code), "?")
        named = frozenset(code.strip("!?") for code in codes)
        marks[sign] = Mark(named, None if "?" in alone else alone.strip("!"))
    return marks


# A hundredth of the currency. The market says whose cent it is.
_MINOR = {
    **dict.fromkeys(("¢", "cents", "cent", "ct"), Mark(_DOLLARS | {"EUR"}, minor=True)),
    **dict.fromkeys(("p", "pence"), Mark(frozenset({"GBP"}), "GBP", minor=True)),
}
_THOUSAND_EUROS = Mark(frozenset({"EUR"}), "EUR", thousands=True)
# Signs that need no word boundary. Bitcoin is money of no state: it is never a currency that is known.
_SIGNS = {
    "$": Mark(_DOLLARS),
    "¢": _MINOR["¢"],
    **dict.fromkeys(("k€", "K€", "€k"), _THOUSAND_EUROS),
    **_table("""£ GBP! EGP LBP SYP SDG GIP FKP SHP|₤ GBP TRY ITL|€ EUR|¥ JPY CNY|CN¥ CNY|JP¥ JPY|RMB¥ CNY|₿|円 JPY
        日元 JPY|元 CNY TWD HKD MOP|圓 CNY TWD HKD MOP|人民币 CNY|원 KRW|บาท THB|R$ BRL|E£ EGP|S/. PEN|S/ PEN
        ש"ח ILS|ש״ח ILS|שח ILS|د.إ AED|درهم AED MAD|ر.س SAR|ر.ق QAR|ر.ع OMR|د.ك KWD|د.ب BHD|ج.م EGP
        جنيه EGP SDG SYP LBP|ریال SAR IRR YER OMR QAR|ريال SAR IRR YER OMR QAR
        ₹ INR|₩ KRW|₺ TRY|₪ ILS|₽ RUB|₴ UAH|฿ THB|₱ PHP|₫ VND|₦ NGN|₵ GHS|₸ KZT|₼ AZN|₾ GEL|₡ CRC|₲ PYG|₭ LAK|₮ MNT
        ৳ BDT|៛ KHR"""),
}
# What stands beside a dollar sign: "US $", "$US", "34,99 $ CA".
_COUNTRIES = _table("""US USD|U.S. USD|CA CAD|C CAD|CAN CAD|CDN CAD|AU AUD|A AUD|AUS AUD|NZ NZD|HK HKD|S SGD|SG SGD
    NT TWD|MX MXN|MEX MXN|RD DOP|J JMD|TT TTD|EC XCD|BZ BZD|FJ FJD|N NAD|AR ARS|COL COP|B BND|BDS BBD|ARG ARS""")
# These may also end the words before the sign ("Grade AU $310", "Vitamin C $5"), if a space follows.
LOOSE = frozenset({"A $", "AU $", "B $", "C $", "J $", "N $", "S $"})
# Words, in any case.
_NAMES = {
    **{name: mark for name, mark in _MINOR.items() if len(name) > 1},
    **dict.fromkeys(("dollar", "dollars", "dólares"), Mark(_DOLLARS)),
    **dict.fromkeys(("rs", "rupee", "rupees"), Mark(frozenset(["INR", "PKR", "LKR", "NPR", "MUR", "SCR"]))),
    **dict.fromkeys(
        ("fr", "frs", "francs"), Mark(frozenset(["CHF", "XAF", "XOF", "XPF", "BIF", "CDF", "DJF", "GNF", "KMF", "RWF"]))
    ),
    **dict.fromkeys(("pesos", "peso"), Mark(frozenset(["MXN", "CLP", "COP", "ARS", "UYU", "DOP", "CUP", "PHP"]))),
    **_table("""kr SEK NOK DKK ISK|kronor SEK|kroner NOK DKK|krónur ISK|franken CHF|sfr CHF|euro EUR|euros EUR|евро EUR
        ευρώ EUR|pounds GBP EGP|sterling GBP|quid GBP|yen JPY|yuan CNY|rmb CNY|zł PLN|zl PLN|złotych PLN|zloty PLN
        kč CZK|korun CZK|forint HUF|reais BRL|lei RON MDL|leu RON MDL|лв BGN|грн UAH|гривень UAH|руб RUB BYN
        рублей RUB BYN|р RUB BYN|тг KZT|дин RSD MKD|din RSD MKD|kn HRK|tl TRY|lira TRY LBP SYP|nis ILS|shekels ILS
        baht THB|ringgit MYR|rp IDR|rupiah IDR|dhs AED MAD|dh AED MAD|vnđ VND|đ VND|đồng VND|bs BOB VES|fcfa XAF XOF
        cfa XAF XOF|btc|eth"""),
}
# Words that mean money only in this writing.
_EXACT = {"p": _MINOR["p"], **_table("Ft HUF|RM MYR|R ZAR?|Kc CZK|SR SAR SCR|KD KWD?|BD BHD?|LE EGP?|Q GTQ?|DM DEM")}
# Only Switzerland writes francs with an apostrophe or a dash for the centimes.
SWISS = _sure("CHF")


def _any(texts: Iterable[str]) -> str:
    """The longest first, so that none hides a longer one."""
    return "|".join(re.escape(text) for text in sorted(texts, key=lambda text: (-len(text), text)))


def pattern() -> str:
    """A regular expression for one mark; ``mark_of`` tells what it means."""
    letter, dollars = r"[^\W\d_]", _any(_DOLLARS)
    names = f"(?i:{_any(_NAMES)}|{_any(CODES - _WORDS)})|{_any(CODES)}|{_any(_EXACT)}"
    return (
        rf"(?<!{letter})(?:{_any(_COUNTRIES)}|{dollars}|Mex|Arg|Aus|Can) ?\$|(?<!{letter})(?:JPY|CNY|GBP|EUR) ?[¥£€]"
        rf"|\$ ?(?:US|CAN?|AUS?|NZ|HK|MX)(?!{letter})|{_any(_SIGNS)}|(?<!{letter})(?:{names})(?!{letter})"
    )


@cache
def mark_of(text: str) -> Mark:
    """What a text that matches ``pattern`` means."""
    plain = text.replace(" ", "")
    country = plain.strip("$").upper()
    if plain in _SIGNS:
        return _SIGNS[plain]
    if "$" in plain and country in _COUNTRIES:
        return _COUNTRIES[country]
    if plain[3:] in {"$", "¥", "£", "€"}:
        return _sure(plain[:3])
    return _EXACT.get(plain) or _NAMES.get(plain.lower()) or _sure(plain.upper())


def decimals(currency: str) -> int:
    """How many decimals the currency has: 2, 0 (yen), 3 (Bahraini dinar)."""
    return int(get_currency_precision(currency))


def code_of(text: str | None) -> str | None:
    """The currency that a field names by code, sign or name; None if it is not one that is known."""
    plain = " ".join((text or "")[:40].split())
    if plain.upper() in CODES:
        return plain.upper()
    return mark_of(plain).resolve(None) if _WHOLE.fullmatch(plain) else None


_WHOLE = re.compile(pattern())
