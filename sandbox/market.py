"""Coin marketplaces, any number of them by name: listing pages and JSON APIs."""

from __future__ import annotations

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox.market_listings import Offer, offers

# A lone "$" would be any dollar: the sandbox's markets have no currency of their own.
SIGNS = {"USD": "US $", "EUR": "€", "GBP": "£"}

# What else the same element says; the price is the same with all of them.
BESIDE = (
    "{price}",
    "{price} + US $4.00 shipping",
    "Sold {day:%b} {day.day}, {day.year} {price}",
    "{price} (approx. ¥18,000)",
    "{price} 12 bids",
    "Lot 214 — Hammer price: {price}",
    "{price} Free shipping",
)


# On the market called "odd" each offer says its price in another of these ways: of some nobody knows what they mean.
ODD = (
    "120 kr",
    "₹1,200",
    "HK$100",
    "C $34.99",
    "£1,050.00 (approx. US $1,300.00)",
    "Lot of 3: $45.00",
    "Sold Nov 3, 2024 US $120.00",
    "US $10.00 to US $25.00",
    "ca. 80 €",
    "¥12,000",
    "Was £80.00, now £64.00",
    "price on request",
)


def routes() -> list[BaseRoute]:
    """``/market/{name}/search`` (HTML), ``/market/{name}/api/items`` (JSON), ``/market/{name}/item/{number}``."""
    return [
        Route("/market/{name}/search", _page),
        Route("/market/{name}/api/items", _items),
        Route("/market/{name}/item/{number}", _item),
    ]


async def _page(request: Request) -> Response:
    market, query = request.path_params["name"], request.query_params.get("q", "")[:500]
    found = offers(market, query) if query else []
    odd = ODD if market == "odd" else ()
    rows = "\n".join(_row(offer, *odd[n : n + 1]) for n, offer in enumerate(found))
    return HTMLResponse(
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{escape(f'{market}: {query}')}</title></head>"
        f'<body><h1>{len(found)} offers</h1><ul class="listings">\n{rows}\n</ul></body></html>'
    )


def _row(offer: Offer, price: str = "") -> str:
    told = price or _written(offer)
    identity = f' data-id="{escape(offer.id)}"' if offer.id else ""
    return (
        f'<li class="listing" data-type="{offer.type}"{identity}>'
        f'<a class="title" href="{escape(offer.path)}">{escape(offer.title)}</a> '
        f'<span class="price">{told}</span> <time datetime="{offer.day}">{offer.day:%d %B %Y}</time></li>'
    )


def _written(offer: Offer) -> str:
    """As people of that currency write it, and with what marketplaces put beside a price."""
    plain = f"{offer.amount:,.2f}"
    if offer.currency == "EUR":
        written = plain.translate(str.maketrans(",.", ".,")) + " €"
    else:
        sign = SIGNS.get(offer.currency)
        written = f"{sign}{plain}" if sign else f"{offer.currency} {plain.replace(',', chr(39))}"
    return BESIDE[offer.day.day % len(BESIDE)].format(price=written, day=offer.day)


async def _items(request: Request) -> Response:
    market, query = request.path_params["name"], request.query_params.get("q", "")[:500]
    found = offers(market, query) if query else []
    return JSONResponse({"total": len(found), "items": [_json(offer) for offer in found]})


def _json(offer: Offer) -> dict[str, object]:
    price = {"value": offer.amount, "currency": offer.currency}
    parts: dict[str, object] = {
        "title": offer.title,
        "url": offer.path,
        "price": price,
        "type": offer.type,
        "date": str(offer.day),
    }
    return {"id": offer.id, **parts} if offer.id else parts


async def _item(request: Request) -> Response:
    number = escape(request.path_params["number"])
    return HTMLResponse(f"<title>Offer {number}</title><h1>Offer {number}</h1>")
