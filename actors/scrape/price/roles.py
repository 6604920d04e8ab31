"""Finds the amounts in a cut text: each with its currency marks and its role."""

from __future__ import annotations

from actors.scrape.price import words
from actors.scrape.price.counted import BREAKS, Counted
from actors.scrape.price.currencies import LOOSE, mark_of
from actors.scrape.price.view import Amount, Found

LONGEST_PHRASE = 4


class Finder(Counted):
    """One pass over the tokens that names the numbers, one that attaches currency marks, one that gives roles."""

    def find(self) -> Found:
        """Everything in the text."""
        self._name_dates()
        self._name_numbers()
        self._attach_marks()
        self._give_roles()
        self.found.amounts = [self._at[place] for place in sorted(self._at)]
        return self.found

    # ---- currency marks

    def _attach_marks(self) -> None:
        marks = [at for at, token in enumerate(self.tokens) if token.kind == "mark"]
        sides = {at: (self._left(at), self._right(at)) for at in marks}
        before = {right is not None for left, right in sides.values() if (left is None) != (right is None)}
        for at in marks:
            left, right = sides[at]
            if left is not None and right is not None:
                left, right = self._choose(at, left, right, before)
            amount = left if left is not None else right
            if amount is None:
                self.found.loose_marks += 1
            else:
                self._attach(at, amount, is_left=left is not None)

    def _attach(self, at: int, amount: Amount, is_left: bool) -> None:
        token = self.tokens[at]
        amount.marks.append(mark_of(token.text))
        if is_left:
            amount.end = max(amount.end, at)
        else:
            amount.start = min(amount.start, at)
        strange = self._kind(at - 1) == "word" and not self._is_known(at - 1)
        amount.unclear |= token.text in LOOSE and strange

    def _left(self, at: int) -> Amount | None:
        """The amount that ends right before the mark, or before another mark that is its own."""
        for amount in self._at.values():
            if amount.end + 1 == at:
                return amount
        if self._kind(at - 1) == "mark" and at >= 2:
            return next((amount for amount in self._at.values() if amount.end + 2 == at and amount.marks), None)
        return None

    def _right(self, at: int) -> Amount | None:
        behind = at + 1
        if self._is_sign(behind, ":") or self._is_sign(behind, "."):
            behind += 1
        if self._kind(behind) == "mark":
            behind += 1
        return self._at.get(behind)

    def _choose(self, at: int, left: Amount, right: Amount, before: set[bool]) -> tuple[Amount | None, Amount | None]:
        """Between two numbers: the one it touches, else as the other marks of the text do."""
        touches_left, touches_right = self.tokens[at].tight, self._tight(at + 1)
        if left.marks and not right.marks and self._kind(at + 1) == "mark":
            return left, None  # $45.00 CAD $10.00
        if touches_left != touches_right:
            return (left, None) if touches_left else (None, right)
        if len(before) == 1:
            return (None, right) if True in before else (left, None)
        self.found.odd.append("a currency between two numbers")
        return left, None

    # ---- roles

    def _give_roles(self) -> None:
        pending, segment, at = "", 0, 0
        last: Amount | None = None
        while at < len(self.tokens):
            token = self.tokens[at]
            if at in self._at:
                last, pending = self._pass(self._at[at], pending, last), ""
            elif token.kind == "sign":
                segment += token.text in BREAKS
                pending = self._sign(at, pending, last)
            elif token.kind == "word" and at not in self._used:
                step, role, either = self._role(at)
                if either and last is not None and last.segment == segment and not self._amount_follows(at + step):
                    last.role = self._stronger(last.role, role)
                elif role:
                    pending = role
                at += step - 1
            at += 1

    def _pass(self, amount: Amount, pending: str, last: Amount | None) -> Amount:
        amount.role = pending or amount.role
        negative = self._is_sign(amount.start - 1, "-") and self._tight(amount.start)
        joined = last is not None and last.end == amount.start - 2
        if negative and not joined and self._kind(amount.start - 2) != "date":
            self.found.odd.append("a negative amount")
        if joined and last is not None and self._joins(amount.start - 1, last.role):
            amount.joined = True
            amount.role = pending or last.role
        return amount

    def _sign(self, at: int, pending: str, last: Amount | None) -> str:
        text = self.tokens[at].text
        if text == "+":
            if last is not None and last.end == at - 1 and self.tokens[at].tight and at + 1 == len(self.tokens):
                self.found.odd.append("at least so much")
            return "extra"
        if text == "~" and not (last is not None and last.end == at - 1):
            return "about"
        if text == "/" and last is not None and last.end == at - 1 and self._kind(at + 1) == "word":
            if self.tokens[at + 1].low in words.SPAN | words.INSTALMENT:
                self.found.odd.append("a price for a span of time")
            last.role = last.role or "each"
        return "" if text == ")" else pending

    def _role(self, at: int) -> tuple[int, str, bool]:
        """The longest phrase that is known here: how many tokens, its role, and whether it may follow its amount."""
        for length in range(LONGEST_PHRASE, 0, -1):
            phrase = self._text(at, length)
            if phrase is None:
                continue
            size, text = phrase
            if text in words.POST_FREE:
                return size, "", False
            if words.EITHER_WORDS.get(text) == "off" and self._kind(at - 1) == "share":
                return size, "", False
            if text in words.EITHER_WORDS:
                return size, words.EITHER_WORDS[text], True
            if text in words.BEFORE_WORDS:
                return size, words.BEFORE_WORDS[text], False
            if text in words.NOTHING or text in words.JOIN:
                return size, "", False
        if not self._is_known(at):
            self.found.strange.append(self.tokens[at].text)
        return 1, "", False

    def _amount_follows(self, at: int) -> bool:
        while self._is_sign(at, ":") or self._is_sign(at, "."):
            at += 1
        return self._kind(at) == "mark" or at in self._at

    def _stronger(self, old: str, new: str) -> str:
        return new if old not in {"extra", "post", "was"} else old

    def _joins(self, at: int, role: str) -> bool:
        token = self.tokens[at]
        return token.text in {"-", "~"} or token.low in words.JOIN or (token.text == "/" and role == "estimate")
