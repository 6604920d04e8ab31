"""Names the numbers of a text: dates, quantities, counts, ids; what is left may be an amount."""

from __future__ import annotations

from decimal import Decimal

from actors.scrape.price import words
from actors.scrape.price.view import Amount, View

BREAKS = frozenset("()[]⏎|·•;,+")


class Counted(View):
    """The numbers, each with what it counts."""

    def _name_dates(self) -> None:
        """``Nov 3, 2024``, ``3. November 2024``, ``Nov 2024``; written with digits they are tokens already."""
        months = words.months()
        for at, token in enumerate(self.tokens):
            if token.kind in {"date", "share"}:
                self._used.add(at)
                self.found.dates += token.kind == "date"
            if token.kind == "share":
                self.found.shares.append(Decimal(token.text.strip("-+% ").replace(",", ".")))
            if token.kind != "word" or token.low not in months:
                continue
            near = [place for place in self._around(at) if self._is_day_or_year(place)]
            if near:
                self._used.update({at, *near})
                self.found.dates += 1

    def _around(self, at: int) -> list[int]:
        """The numbers that may belong to a month: one before it, up to two behind it."""
        places = [at - 1] if not self._is_sign(at - 1, ".") else [at - 2]
        behind = at + 1 + self._is_sign(at + 1, ".")
        day = behind if self._kind(behind) == "number" else -1
        places.append(behind)
        if day >= 0:
            places.append(day + 1 + self._is_sign(day + 1, ","))
        return places

    def _is_day_or_year(self, at: int) -> bool:
        if self._kind(at) != "number":
            return False
        plain = self.tokens[at].text.rstrip(".,")
        marked = self._kind(at - 1) == "mark" and self.tokens[at].tight
        return plain.isdigit() and not marked and (1 <= int(plain) <= 31 or 1500 <= int(plain) <= 2100)

    def _name_numbers(self) -> None:
        depth = segment = 0
        for at, token in enumerate(self.tokens):
            if token.kind == "sign" and token.text in BREAKS:
                segment += 1
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
            if token.kind == "number" and at not in self._used:
                self._name_number(at, depth, segment)
            elif token.low in words.NUMBERS and self._kind(at) == "word":
                self._used.add(at)
                self.found.quantities.add(words.NUMBERS[token.low])

    def _name_number(self, at: int, depth: int, segment: int) -> None:
        plain = self.tokens[at].text.rstrip(".,")
        whole = int(plain) if plain.isdigit() and len(plain) < 7 else None
        if self._is_code(at) or (whole is not None and (self._is_quantity(at, whole) or self._is_count(at))):
            self._used.add(at)
        elif whole is None and not self._marked_near(at) and self._phrase(at + 1, words.SIZE):
            self._used.update({at, at + 1})
        else:
            amount = Amount(self.tokens[at].text, at, at, depth, segment, start=at)
            self._multiply(amount)
            self._doubt(amount)
            self._at[at] = amount

    def _is_code(self, at: int) -> bool:
        """Glued to letters or to a hash: a grade, an id, a year with its mint."""
        token = self.tokens[at]
        if self._is_sign(at - 1, "#") or (self._is_letters(at - 1) and token.tight and not self._is_x(at - 1)):
            return True
        if self._is_sign(at - 1, "-") and token.tight and self.tokens[at - 1].tight and self._kind(at - 2) == "word":
            return True
        if self._is_sign(at + 1, "-") and self._tight(at + 1) and self._kind(at + 2) == "word":
            return self._tight(at + 2) and self._phrase(at + 2, words.THING) == 0
        fraction = self._is_sign(at + 1, "/") and self._tight(at + 1) and self._tight(at + 2)
        if (fraction and self._kind(at + 2) == "number") or self._is_sign(at + 1, "⁄"):
            self._used.add(at + 2)
            return True
        return False

    def _is_quantity(self, at: int, whole: int) -> bool:
        """``Lot of 3``, ``2 for``, ``3 pcs``, ``x3``, ``3x``, ``4er-Set``, ``for 3``."""
        behind = at + 1 + (self._is_sign(at + 1, "-") and self._tight(at + 1))
        if (length := self._phrase(behind, words.COUNT, longer_than=self._phrase(behind, words.THING))) > 0:
            self._used.update(range(behind, behind + length))
            return True
        if length := self._phrase(behind, words.THING):
            return self._take(whole, range(behind, behind + length))
        if self._phrase(behind, words.FOR) and self._kind(behind + 1) in {"mark", "number"}:
            return self._take(whole, range(behind, behind + 1))
        before = self.tokens[at - 1].low if at else ""
        if self._is_x(at - 1) and self.tokens[at].tight and self._kind(at - 2) != "number":
            return self._take(whole, range(at - 1, at))
        if self._is_x(at + 1):
            behind = at + 3 if self._kind(at + 2) == "word" and self.tokens[at + 2].low in words.OF else at + 2
            if self._kind(behind) in {"mark", "number"}:
                self.found.odd.append("a number times a price")
            return self._take(whole, range(at + 1, at + 2))
        bundle = self.tokens[at - 2].low if at > 1 else ""
        if bundle in words.BUNDLE and (before in words.OF or (before == ":" and bundle not in words.ID)):
            return self._take(whole, range(at - 2, at))
        if before in words.BUNDLE - words.ID and self._kind(at + 1) != "mark":
            return self._take(whole, range(at - 1, at))
        if before in words.FOR and self._kind(at - 2) in {"number", "mark"} and self._kind(at + 1) != "mark":
            return self._take(whole, range(at - 1, at))
        return False

    def _take(self, whole: int, places: range) -> bool:
        self._used.update(places)
        self.found.quantities.add(whole)
        return True

    def _is_count(self, at: int) -> bool:
        """Bids, stock, hours, ounces; the number of a lot; a grade."""
        behind = at + 1 + self._is_sign(at + 1, "+")
        for known in (words.COUNT, words.SPAN, words.SIZE):
            length = self._phrase(behind, known)
            abbreviated = length and self.tokens[behind].low in words.ROUND and self._marked_near(at)
            if length and not abbreviated:
                self._used.update(range(behind, behind + length))
                return True
        before = at - 1 - (self._is_sign(at - 1, ":") or self._is_sign(at - 1, "."))
        if self._kind(before) != "word" or self.tokens[before].low not in words.ID:
            return False
        self.found.ids += 1
        self._used.add(before)
        return True

    def _marked_near(self, at: int) -> bool:
        return self._kind(at - 1) == "mark" or self._kind(at + 2) == "mark"

    def _multiply(self, amount: Amount) -> None:
        """Thousands, millions, lakh, 万 behind the number become part of it."""
        at = amount.place + 1
        if self._kind(at) != "word":
            return
        low = self.tokens[at].low
        if low in words.EXACT:
            amount.times = words.EXACT[low]
        elif low in words.ROUND and (len(low) > 1 or self._tight(at)):
            amount.times, amount.rounded = words.ROUND[low], True
        else:
            return
        self._used.add(at)
        amount.end = at + self._is_sign(at + 1, ".")
        if not low.isascii() and not amount.rounded:
            self._add_rest(amount)

    def _add_rest(self, amount: Amount) -> None:
        """``1万2,800`` and ``3만 5천``: what is counted in smaller units, or in ones right behind."""
        unit = amount.times
        while self._kind(amount.end + 1) == "number":
            at = amount.end + 1
            counted = self._kind(at + 1) == "word" and self.tokens[at + 1].low in words.EXACT
            times = words.EXACT[self.tokens[at + 1].low] if counted else 1
            digits = self.tokens[at].text.replace(",", "")
            if not digits.isdigit() or int(digits) * times >= unit or not (counted or self._tight(at)):
                return
            amount.plus, unit, amount.end = amount.plus + int(digits) * times, times, at + counted
            self._used.update(range(at, amount.end + 1))

    def _doubt(self, amount: Amount) -> None:
        """``Lot 12 350`` may be two numbers, and ``1e5`` is none that a market writes."""
        before, behind = amount.place - 1, amount.end + 1
        named = self._kind(before) == "word" and (not self._is_known(before) or self.tokens[before].low in words.ID)
        amount.unclear = " " in amount.text.rstrip("-= ") and named
        amount.unclear |= self._is_letters(behind) and self._tight(behind) and not self._is_known(behind)
