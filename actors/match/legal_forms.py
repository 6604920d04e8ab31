"""Legal forms of companies: what stands before or behind a name and says nothing about who it is. Pure."""

from __future__ import annotations

import re

from actors.match.normalise import fold

# As folded words, points left out: "S.A. de C.V." is read as "sa de cv".
_BEHIND = """
    inc incorporated corp corporation co company ltd limited llc llp lp plc pllc na pty pte pvt private
    gmbh mbh gesmbh ek ag kg kgaa ohg gbr ug ev se eg
    sa rl sas sarl sasu snc sca nv bv bvba srl cv
    spa sl slu sau ltda lda eireli me
    ab as asa oy oyj aps a/s is hf ehf
    zrt kft nyrt rt bt sro as spol doo dd ad ood eood jsc ojsc cjsc pjsc
    sp zoo spzoo oo ks vos sk sj oao ooo ao zao pao tov cie sti anonim limitada ltee
    sdn bhd berhad tbk kk gk kaisha ae epe oe sanv
"""
_WITHIN = frozenset({"de", "and", "s", "z"})
_AND = frozenset({"&", "+", "und", "et", "y", "e"})
_BEFORE = frozenset({"oao", "ooo", "ao", "zao", "pao", "ip", "pt", "cv"})
_JAPANESE = ("株式会社", "有限会社", "合同会社", "㈱")
_CHINESE = ("股份有限公司", "有限责任公司", "有限公司", "股份公司")
_SIGNS = (*_JAPANESE, *_CHINESE, "주식회사", "㈜")
_FORMS = frozenset(_BEHIND.split())
_APART = re.compile(r"[\s,]+")


def without_legal_form(name: str) -> str:
    """``Appleby, Inc.`` is Appleby; what would leave nothing is left as it is."""
    bare = name
    for sign in _SIGNS:
        bare = bare.replace(sign, " ")
    parts = [part for part in _APART.split(bare.strip()) if part]
    plain = [_plain(part) for part in parts]
    end = _end(plain)
    begin = 1 if end > 1 and plain[0] in _BEFORE else 0
    # Only what was cut is touched: commas within what is left are the name's own.
    return _kept(bare, parts[begin:end]) or name


def _end(plain: list[str]) -> int:
    """How many words are left when forms, and what joins them, are taken from behind."""
    end = len(plain)
    while end > 1 and (plain[end - 1] in _FORMS or (end < len(plain) and plain[end - 1] in _WITHIN)):
        end -= 1
    return end


def _kept(name: str, parts: list[str]) -> str:
    if not parts:
        return ""
    begin = name.find(parts[0])
    end = name.rfind(parts[-1]) + len(parts[-1])
    return " ".join(name[begin:end].split()).strip(" ,")


def _plain(part: str) -> str:
    return "and" if part in _AND else fold(part).replace(" ", "")
