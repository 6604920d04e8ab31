"""What the registry's documents say: the source text that reading them must give back, page by page."""

from __future__ import annotations

# A page is a list of paragraphs.
Page = list[str]

DEED: list[Page] = [
    [
        "Acte de vente d'un verger",
        "L'an mil neuf cent trente-sept, le vingt-trois août, à onze heures du matin, devant nous, notaire à "
        "Pontarlier, s'est présentée Mme Hélène Lefèvre, née à Besançon, marchande de graines, âgée de "
        "quarante-deux ans.",
        "Elle a déclaré céder à son cousin, M. Benoît Château, maître tonnelier, un verger planté de pruniers, de "
        "cerisiers et de deux vieux mûriers, situé au lieu-dit « La Forêt-Brûlée ».",
    ],
    [
        "Le terrain s'étend du chemin creux jusqu'à la rivière ; il touche au nord le pré de l'évêché et, vers le "
        "midi, l'ancien hôtel des Trois-Évêques. Une haie de noisetiers le protège du vent d'hiver.",
        "Le vendeur garde le droit d'y puiser l'eau où bon lui semble, sauf les dimanches et jours de fête. "
        "L'acheteur s'engage à entretenir le vieux pont, dont la clé de voûte fut posée en 1812.",
    ],
    [
        "Le prix a été fixé à 3 500 francs, payés comptant en présence de deux témoins. Le reçu n° 48 reste annexé "
        "à l'acte ; une copie en sera remise à chaque partie dès la première demande.",
        "Çà et là, des bornes de grès indiquent la limite. L'une d'elles, tombée après l'orage du 9 février, sera "
        "relevée aux frais de l'acquéreur avant le printemps.",
    ],
    [
        "Les parties ont reconnu que la récolte sur pied n'entre point dans la vente : le vendeur cueillera ses "
        "fruits jusqu'à la Saint-Rémi, puis laissera les échelles dans le cellier.",
        "En cas de gelée tardive, chacun supportera sa part de la perte. Aucun arbre ne sera coupé sans l'accord "
        "exprès du voisin, car les racines retiennent la berge à cet endroit.",
    ],
    [
        "L'œuvre du jardinier Anaïs Güell, qui greffa les poiriers, mérite d'être citée : grâce à elle, le sol jadis "
        "pauvre donne aujourd'hui plus de quatre-vingts paniers par été.",
        "Son carnet, conservé dans un coffre de chêne, décrit chaque semis, chaque taille et chaque maladie. Il sera "
        "prêté à l'acheteur, qui le rendra à la bibliothèque du collège.",
    ],
    [
        "Lecture faite, les comparants ont signé avec nous, sauf le témoin Noël Dupré qui a déclaré ne savoir écrire "
        "et a tracé une croix. Fait à Pontarlier, à l'étude, le jour et l'an susdits.",
        "Enregistré le 2 septembre, folio 117, case 6. Reçu pour droits : deux cent dix francs et cinq centimes. "
        "« Que la paix demeure entre les voisins », ajouta le greffier.",
    ],
]

# Two columns, with words broken at the ends of lines: each string is one printed line.
GAZETTE_TITLE = "Gazette du canal"
GAZETTE_LEFT = [
    "Hier soir, la péniche La Fidèle",
    "a franchi l'écluse neuve sous",
    "les applaudissements des rive-",
    "rains. Le maire, très ému, a",
    "salué l'équipage et promis un",
    "éclairage pour le quai avant",
    "la fin de l'année prochaine.",
]
GAZETTE_RIGHT = [
    "Au marché, le prix des pommes",
    "de terre a baissé d'un dixième.",
    "« Pensez-vous que cela dure-",
    "ra ? » demande une cliente à",
    "son épicier. « Peut-être jus-",
    "qu'à Noël », répond celui-ci",
    "en pesant trois kilos de poires.",
]
GAZETTE_TEXT = (
    "Gazette du canal\n\n"
    "Hier soir, la péniche La Fidèle a franchi l'écluse neuve sous les applaudissements des riverains. Le maire, "
    "très ému, a salué l'équipage et promis un éclairage pour le quai avant la fin de l'année prochaine.\n\n"
    "Au marché, le prix des pommes de terre a baissé d'un dixième. « Pensez-vous que cela durera ? » demande une "
    "cliente à son épicier. « Peut-être jusqu'à Noël », répond celui-ci en pesant trois kilos de poires."
)

NOTE: list[Page] = [
    ["Reçu de Mme Lefèvre la clé du cellier et deux échelles.", "Pontarlier, le 3 septembre 1937."],
]


def whole(pages: list[Page]) -> str:
    """The text of a document: a blank line between paragraphs."""
    return "\n\n".join(paragraph for page in pages for paragraph in page)
