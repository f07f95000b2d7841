"""Owns the repository that the example agent works on: a small invoicing package with two real faults and its tests.

`create` writes it; nothing is random. The faults are both in `tally/rounding.py`: halves are rounded to even, and
cash amounts are not rounded symmetrically. The region tables are written by a program, as its first line says; how
many rates a table has decides how much there is to read.
"""

from __future__ import annotations

from pathlib import Path

AGENTS = """# Rules of this repository

- Rounding has one home, `tally/rounding.py`. Everything else calls it.
- Halves round away from zero. A credit note must bring an invoice to exactly zero.
- `tally/regions/*.py` are written by a program from the tax offices' lists. Do not edit them by hand.
- Run all tests with `python -m unittest`; they take less than a second.
- Amounts are `Decimal` from the first line to the last. No float, not even in a test.
"""

ROUNDING = '''"""The one home of rounding: to the smallest unit of a currency, and to the smallest coin.

Half a unit rounds away from zero, so that a credit note is the exact opposite of its invoice.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

SMALLEST_UNIT = {"CHF": Decimal("0.01"), "EUR": Decimal("0.01"), "JPY": Decimal("1"), "TND": Decimal("0.001")}
SMALLEST_COIN = {"CHF": Decimal("0.05")}


def to_unit(amount: Decimal, currency: str) -> Decimal:
    """The amount in whole smallest units of the currency. Raises KeyError for a currency that is not listed."""
    return amount.quantize(SMALLEST_UNIT[currency], rounding=ROUND_HALF_EVEN)


def to_cash(amount: Decimal, currency: str) -> Decimal:
    """The amount as it can be paid in coins; as it is, where the smallest coin is the smallest unit."""
    coin = SMALLEST_COIN.get(currency)
    if coin is None:
        return to_unit(amount, currency)
    coins = int(amount / coin + Decimal("0.5"))
    return to_unit(coins * coin, currency)
'''

PARSING = r'''"""Strict reading of amounts and quantities. What is not understood is an error that names the text."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?")
PRICE_PLACES = 4
QUANTITY_PLACES = 3


def price(text: str) -> Decimal:
    """A unit price with at most four places. Raises ValueError with the text and the accepted form."""
    return _number(text, PRICE_PLACES, "unit price")


def quantity(text: str) -> Decimal:
    """A quantity with at most three places; negative on a credit note. Raises ValueError like `price`."""
    return _number(text, QUANTITY_PLACES, "quantity")


def _number(text: str, places: int, what: str) -> Decimal:
    match = _NUMBER.fullmatch(text)
    if match is None or len(match.group(1) or "") > places:
        raise ValueError(f"{text!r} is no {what}: digits, one dot, at most {places} places, like 12.5")
    return Decimal(text)
'''

INVOICE = '''"""Invoices: lines, net amounts, tax per class, totals for a bank transfer and for cash.

Tax is computed on the sum of the rounded net amounts of a class, never per line, and is rounded once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from tally import regions
from tally.rounding import to_cash, to_unit


@dataclass(frozen=True)
class Line:
    """One line; `quantity` is negative on a credit note."""

    text: str
    quantity: Decimal
    unit_price: Decimal
    tax_class: str


@dataclass(frozen=True)
class Invoice:
    """Lines of one supply in one region and one currency. The day of supply decides which rates hold."""

    region: str
    currency: str
    supplied: date
    lines: tuple[Line, ...]

    def net(self, line: Line) -> Decimal:
        """Quantity times unit price in whole smallest units."""
        return to_unit(line.quantity * line.unit_price, self.currency)

    def net_by_class(self) -> dict[str, Decimal]:
        """The sum of rounded net amounts per tax class, in order of first appearance."""
        sums: dict[str, Decimal] = {}
        for line in self.lines:
            sums[line.tax_class] = sums.get(line.tax_class, Decimal(0)) + self.net(line)
        return sums

    def tax_by_class(self) -> dict[str, Decimal]:
        """Tax per class, rounded once. Raises LookupError where no rate holds on the day of supply."""
        return {
            name: to_unit(net * regions.rate(self.region, name, self.supplied) / 100, self.currency)
            for name, net in self.net_by_class().items()
        }

    def total(self) -> Decimal:
        """What is sent to a bank: net and tax."""
        return sum(self.net_by_class().values(), Decimal(0)) + sum(self.tax_by_class().values(), Decimal(0))

    def total_in_cash(self) -> Decimal:
        """What is paid over the counter: the total in whole coins."""
        return to_cash(self.total(), self.currency)

    def credit_note(self) -> Invoice:
        """The invoice that brings this one to zero."""
        lines = tuple(Line(one.text, -one.quantity, one.unit_price, one.tax_class) for one in self.lines)
        return Invoice(self.region, self.currency, self.supplied, lines)


def balance(invoices: Iterable[Invoice]) -> Decimal:
    """The sum of the totals; zero for an invoice and its credit note."""
    return sum((one.total() for one in invoices), Decimal(0))
'''

REPORT = r'''"""The report that is printed under an invoice: one row per tax class, then the totals.

Columns are right-aligned and as wide as their longest cell; there is no locale and no currency sign.
"""

from __future__ import annotations

from decimal import Decimal

from tally import regions
from tally.invoice import Invoice

HEAD = ("class", "rate", "net", "tax")


def render(invoice: Invoice) -> str:
    """The report as text, lines separated by newlines, without one at the end."""
    rows = [HEAD, *_class_rows(invoice), _total_row(invoice)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
    lines.insert(len(lines) - 1, "-" * len(lines[0]))
    return "\n".join([*lines, _cash_line(invoice)] if _differs(invoice) else lines)


def _class_rows(invoice: Invoice) -> list[tuple[str, str, str, str]]:
    taxes = invoice.tax_by_class()
    return [
        (name, f"{regions.rate(invoice.region, name, invoice.supplied)}%", str(net), str(taxes[name]))
        for name, net in invoice.net_by_class().items()
    ]


def _total_row(invoice: Invoice) -> tuple[str, str, str, str]:
    net = sum(invoice.net_by_class().values(), Decimal(0))
    return ("total", "", str(net), str(invoice.total()))


def _differs(invoice: Invoice) -> bool:
    return invoice.total() != invoice.total_in_cash()


def _cash_line(invoice: Invoice) -> str:
    return f"in cash: {invoice.total_in_cash()} {invoice.currency}"
'''

REGIONS = '''"""Tax rates by region, class and day. The tables beside this file are generated; this one is not."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from importlib import import_module

Row = tuple[str, date, date, Decimal]


def table(region: str) -> tuple[Row, ...]:
    """The rates of a region: class, first day, last day, percent. Raises LookupError for an unknown region."""
    try:
        return import_module(f"tally.regions.{region}").RATES
    except ModuleNotFoundError as error:
        raise LookupError(f"no tax table for region {region!r}") from error


def rate(region: str, tax_class: str, day: date) -> Decimal:
    """The percentage that holds on a day, its first and last day included. Raises LookupError if none does."""
    for name, first, last, percent in table(region):
        if name == tax_class and first <= day <= last:
            return percent
    raise LookupError(f"no rate of class {tax_class!r} in {region!r} on {day.isoformat()}")
'''

TEST_ROUNDING = '''"""Rounding is away from zero on a half, in units and in coins, and symmetric."""

import unittest
from decimal import Decimal

from tally.rounding import to_cash, to_unit


class ToUnit(unittest.TestCase):
    def test_less_than_half_goes_down(self):
        self.assertEqual(to_unit(Decimal("0.124"), "EUR"), Decimal("0.12"))

    def test_half_goes_away_from_zero(self):
        self.assertEqual(to_unit(Decimal("0.125"), "EUR"), Decimal("0.13"))

    def test_negative_half_goes_away_from_zero(self):
        self.assertEqual(to_unit(Decimal("-0.125"), "EUR"), Decimal("-0.13"))

    def test_yen_have_no_fraction(self):
        self.assertEqual(to_unit(Decimal("10.5"), "JPY"), Decimal("11"))

    def test_dinars_have_three_places(self):
        self.assertEqual(to_unit(Decimal("1.0005"), "TND"), Decimal("1.001"))


class ToCash(unittest.TestCase):
    def test_francs_are_paid_in_five_centimes(self):
        self.assertEqual(to_cash(Decimal("12.37"), "CHF"), Decimal("12.35"))

    def test_half_a_coin_goes_up(self):
        self.assertEqual(to_cash(Decimal("12.375"), "CHF"), Decimal("12.40"))

    def test_money_back_is_rounded_like_money_paid(self):
        self.assertEqual(to_cash(Decimal("-12.38"), "CHF"), Decimal("-12.40"))

    def test_euros_are_paid_in_cents(self):
        self.assertEqual(to_cash(Decimal("12.37"), "EUR"), Decimal("12.37"))
'''

TEST_INVOICE = '''"""An invoice adds up as a customer with a pocket calculator would add it up."""

import unittest
from datetime import date
from decimal import Decimal

from tally.invoice import Invoice, Line, balance
from tally.report import render

LINES = (
    Line("Bread", Decimal("3"), Decimal("2.1150"), "reduced"),
    Line("Cloth", Decimal("1.5"), Decimal("8.3500"), "standard"),
    Line("Thread", Decimal("7"), Decimal("0.0650"), "standard"),
)
INVOICE = Invoice("ch", "CHF", date(2026, 3, 2), LINES)


class Totals(unittest.TestCase):
    def test_net_is_rounded_per_line(self):
        self.assertEqual([INVOICE.net(line) for line in LINES], [Decimal("6.35"), Decimal("12.53"), Decimal("0.46")])

    def test_tax_is_rounded_per_class(self):
        self.assertEqual(INVOICE.tax_by_class(), {"reduced": Decimal("0.17"), "standard": Decimal("1.05")})

    def test_total(self):
        self.assertEqual(INVOICE.total(), Decimal("20.56"))

    def test_total_in_cash(self):
        self.assertEqual(INVOICE.total_in_cash(), Decimal("20.55"))

    def test_a_credit_note_brings_the_balance_to_zero(self):
        self.assertEqual(balance([INVOICE, INVOICE.credit_note()]), Decimal("0.00"))

    def test_a_credit_note_in_cash_is_the_opposite(self):
        self.assertEqual(INVOICE.credit_note().total_in_cash(), -INVOICE.total_in_cash())

    def test_the_report_ends_with_the_cash_amount(self):
        self.assertEqual(render(INVOICE).splitlines()[-1], "in cash: 20.55 CHF")
'''

TEST_REGIONS = '''"""A rate holds from its first to its last day."""

import unittest
from datetime import date
from decimal import Decimal

from tally import parsing, regions


class Rates(unittest.TestCase):
    def test_the_rate_of_a_day(self):
        self.assertEqual(regions.rate("ch", "standard", date(2026, 3, 2)), Decimal("8.1"))

    def test_the_last_day_is_included(self):
        self.assertEqual(regions.rate("de", "standard", date(2026, 12, 31)), Decimal("19.0"))

    def test_an_unknown_region_is_named(self):
        with self.assertRaisesRegex(LookupError, "atlantis"):
            regions.rate("atlantis", "standard", date(2026, 3, 2))


class Parsing(unittest.TestCase):
    def test_a_price_has_four_places_at_most(self):
        self.assertEqual(parsing.price("0.0650"), Decimal("0.0650"))

    def test_grouping_is_refused(self):
        with self.assertRaisesRegex(ValueError, "1,000.00"):
            parsing.price("1,000.00")
'''

FILES: dict[str, str] = {
    "AGENTS.md": AGENTS,
    "tally/__init__.py": '"""Invoices that add up."""\n',
    "tally/invoice.py": INVOICE,
    "tally/parsing.py": PARSING,
    "tally/report.py": REPORT,
    "tally/rounding.py": ROUNDING,
    "tally/regions/__init__.py": REGIONS,
    "tests/__init__.py": "",
    "tests/test_invoice.py": TEST_INVOICE,
    "tests/test_regions.py": TEST_REGIONS,
    "tests/test_rounding.py": TEST_ROUNDING,
}

# Region: standard and reduced rate of 2026, in percent.
RATES_2026: dict[str, tuple[float, float]] = {
    "at": (20.0, 10.0), "be": (21.0, 6.0), "ch": (8.1, 2.6), "cz": (21.0, 12.0), "de": (19.0, 7.0), "dk": (25.0, 25.0),
    "es": (21.0, 10.0), "fi": (25.5, 14.0), "fr": (20.0, 5.5), "ie": (23.0, 13.5), "it": (22.0, 10.0),
    "nl": (21.0, 9.0), "pl": (23.0, 8.0), "pt": (23.0, 6.0), "se": (25.0, 12.0), "si": (22.0, 9.5),
}  # fmt: skip
YEARS = 36
FEW_YEARS = 5


def create(root: Path, small: bool = False) -> None:
    """Write the repository below `root`. `small` writes short region tables."""
    for path, text in (FILES | _tables(FEW_YEARS if small else YEARS)).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _tables(years: int) -> dict[str, str]:
    return {f"tally/regions/{region}.py": _table(region, years) for region in RATES_2026}


def _table(region: str, years: int) -> str:
    head = f'"""Generated from the list of the tax office of region {region}. Do not edit."""'
    imports = "from datetime import date\nfrom decimal import Decimal"
    rows = [_row(name, rate, year) for name, rate in _classes(region) for year in range(2027 - years, 2027)]
    return f"{head}\n\n{imports}\n\nRATES = (\n" + "\n".join(rows) + "\n)\n"


def _classes(region: str) -> list[tuple[str, float]]:
    standard, reduced = RATES_2026[region]
    return [("standard", standard), ("reduced", reduced)]


def _row(name: str, rate: float, year: int) -> str:
    """Earlier rates were lower by half a point every six years."""
    percent = max(rate - 0.5 * ((2026 - year) // 6), 0.0)
    return f'    ("{name}", date({year}, 1, 1), date({year}, 12, 31), Decimal("{percent:.1f}")),'
