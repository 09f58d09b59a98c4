# SPDX-License-Identifier: ISC

"""A stand-in for the evaluator of an API server: as much of the Common
Expression Language as etc/kubernetes/admission.yaml uses, and no more.

It is stricter than the language: there, an error beside what decides `&&' or
`||' is forgotten, here it is one.  Whether a server takes the text it cannot
say, nor what types that server knows."""

import re

TOKEN = re.compile(r"\s*(?:'([^'\\]*)'|(\w+)|"
                   r"(\|\||&&|==|!=|\.\?|[][!.,:+(){}]))")
NONE = object()     # an optional without a value
KEYWORDS = {"true": True, "false": False}


class CelError(Exception):
    pass


class Optional:
    def __init__(self, value):
        self.value = value


def select(value, name, optional):
    """value.name or value.?name; behind an optional both are the latter."""
    if isinstance(value, Optional):
        value, optional = value.value, True
        if value is NONE:
            return Optional(NONE)
    if not isinstance(value, dict):
        raise CelError(f".{name} of {value!r}")
    if optional:
        return Optional(value.get(name, NONE))
    if name not in value:
        raise CelError(f"no {name}")
    return value[name]


def truth(value):
    if not isinstance(value, bool):
        raise CelError(f"{value!r} is neither true nor false")
    return value


def contains(one, of):
    if not isinstance(of, (list, dict)):
        raise CelError(f"in {of!r}")
    return one in of


class Parser:
    """Recursive descent; each method gives a function of the variables."""

    def __init__(self, text):
        self.tokens, at, text = [], 0, text.rstrip()
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise CelError(f"at {text[at:at + 20]!r}")
            string, word, sign = match.groups()
            self.tokens.append(("string", string) if string is not None
                               else ("word", word) if word
                               else ("sign", sign))
            at = match.end()
        self.tokens.append(("end", ""))

    def take(self, *signs):
        """The next token's text, if it is one of these."""
        kind, text = self.tokens[0]
        if kind != "string" and text in signs:
            return self.tokens.pop(0)[1]
        return None

    def need(self, sign):
        if not self.take(sign):
            raise CelError(f"{self.tokens[0][1]!r}, not {sign!r}")

    def word(self):
        kind, text = self.tokens.pop(0)
        if kind != "word":
            raise CelError(f"{text!r} is no name")
        return text

    def whole(self):
        value = self.either()
        if self.tokens != [("end", "")]:
            raise CelError(f"{self.tokens[0][1]!r} behind the end")
        return value

    def either(self):
        left = self.both()
        while self.take("||"):
            left = (lambda a, b: lambda of: truth(a(of)) or truth(b(of)))(
                left, self.both())
        return left

    def both(self):
        left = self.relation()
        while self.take("&&"):
            left = (lambda a, b: lambda of: truth(a(of)) and truth(b(of)))(
                left, self.relation())
        return left

    def relation(self):
        left = self.sum()
        while sign := self.take("==", "!=", "in"):
            compare = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b,
                       "in": contains}[sign]
            left = (lambda a, b, how: lambda of: how(a(of), b(of)))(
                left, self.sum(), compare)
        return left

    def sum(self):
        left = self.unary()
        while self.take("+"):
            left = (lambda a, b: lambda of: a(of) + b(of))(left, self.unary())
        return left

    def unary(self):
        if self.take("!"):
            value = self.unary()
            return lambda of: not truth(value(of))
        return self.member()

    def member(self):
        value = self.primary()
        while sign := self.take(".", ".?", "["):
            if sign == "[":
                key = self.either()
                self.need("]")
                value = (lambda v, k: lambda of: select(v(of), k(of), False))(
                    value, key)
                continue
            name = self.word()
            if sign == "." and self.take("("):
                value = self.call(value, name)
            else:
                value = (lambda v, n, o: lambda of: select(v(of), n, o))(
                    value, name, sign == ".?")
        return value

    def call(self, value, name):
        if name == "orValue":
            other = self.either()
            self.need(")")

            def or_value(of):
                got = value(of)
                if not isinstance(got, Optional):
                    raise CelError(f"orValue of {got!r}")
                return other(of) if got.value is NONE else got.value
            return or_value
        if name not in ("all", "exists"):
            raise CelError(f"{name} is not known")
        each = self.word()
        self.need(",")
        test = self.either()
        self.need(")")
        how = {"all": all, "exists": any}[name]
        return lambda of: how(truth(test({**of, each: one}))
                              for one in value(of))

    def items(self, end, one):
        found = []
        while not self.take(end):
            if found:
                self.need(",")
            found.append(one())
        return found

    def pair(self):
        key = self.either()
        self.need(":")
        return key, self.either()

    def has(self):
        """Of the path in brackets, whether its last name is there."""
        self.need("(")
        path = [self.word()]
        while self.take("."):
            path.append(self.word())
        self.need(")")

        def there(of):
            for name in path[:-1]:
                of = select(of, name, False)
            return path[-1] in of
        return there

    def primary(self):
        if self.take("("):
            value = self.either()
            self.need(")")
            return value
        if self.take("["):
            found = self.items("]", self.either)
            return lambda of: [one(of) for one in found]
        if self.take("{"):
            found = self.items("}", self.pair)
            return lambda of: {k(of): v(of) for k, v in found}
        kind, text = self.tokens.pop(0)
        if kind == "string":
            return lambda of: text
        if kind != "word":
            raise CelError(f"{text!r} begins nothing")
        if text == "has":
            return self.has()
        if text in KEYWORDS:
            return lambda of: KEYWORDS[text]
        return lambda of: select(of, text, False)


def evaluate(text, variables):
    return Parser(text).whole()(variables)
