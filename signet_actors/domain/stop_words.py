"""Words that say nothing about the subject of a question, in four languages.

English stop words always count; those of another language too if a query has at least two of them, and more than
English ones. So "die" is dropped from "wo liegen die Daten?" and kept in "when did the server die?".

Source: docs/quality.md rule 4; the most frequent function words of each language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

_ENGLISH_WORDS = """
    a about above after again against all am an and any are as at be because been before being below between both
    but by can cannot could did do does doing down during each few for from further had has have having he her here
    hers herself him himself his how i if in into is it its itself just me more most my myself no nor not now of off
    on once only or other our ours ourselves out over own same she should so some such than that the their theirs
    them themselves then there these they this those through to too under until up us very was we were what when
    where which while who whom why will with would you your yours yourself yourselves
"""
STOP_WORDS: Final = frozenset(_ENGLISH_WORDS.split())
"""English. Measured: removing them gains 3.9 points of evidence recall at 10 (docs/quality.md rule 4)."""

_GERMAN_WORDS = """
    aber alle allem allen aller alles als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein
    deine deinem deinen deiner dem den denn der des dessen dich die dies diese diesem diesen dieser dieses dir doch
    dort du durch ein eine einem einen einer eines er es etwas euch euer eure für gibt gab habe haben hast hat hatte
    hatten hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes kann
    kein keine keinem keinen keiner können könnte machen man mein meine meinem meinen meiner mich mir mit muss nach
    nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so soll sollte
    über um und uns unser unsere unserem unseren unserer unter vom von vor wann war waren warum was weil welche
    welchem welchen welcher welches wem wen wenn wer werde werden weshalb wie wieder wieso will wir wird wirst wo
    woher wohin wurde wurden zu zum zur
"""
_GERMAN: Final = frozenset(_GERMAN_WORDS.split())
_FRENCH_WORDS = """
    a ai as au aussi autre aux avait avec avoir avons ayant c ce ceci cela ces cet cette ceux chez comme comment d
    dans de des donc dont du elle elles en entre es est et eu eux fait il ils j je l la le les leur leurs lui ma
    mais me mes moi mon même n ne ni nos notre nous on ont ou où par pas pendant plus pour pourquoi qu quand que
    quel quelle quelles quels qui quoi s sa sans se sera ses si sommes son sont sous sur t ta te tes toi ton tous
    tout toute toutes tu un une vos votre vous y à étaient était été être
"""
_FRENCH: Final = frozenset(_FRENCH_WORDS.split())
_SPANISH_WORDS = """
    a al algo algunas algunos ante antes aquel aquella como con contra cual cuales cuando cuál cuáles cuándo cómo de
    del desde donde durante dónde e el ella ellas ellos en entre era eran eres es esa esas ese eso esos esta estaba
    estado estamos estar estas este esto estos está están fue fueron ha haber había han has hasta hay he la las le
    les lo los me mi mis muy más nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro
    otros para pero por porque qué que quien quién quienes se sea ser si sido sin sobre son su sus sí también tanto
    te tiene tienen todo todos tu tus tú un una uno unos y ya yo él
"""
_SPANISH: Final = frozenset(_SPANISH_WORDS.split())
_LEAST: Final = 2
_LEAST_WORDS: Final = 8
"""An English text of so many words has a stop word among them."""
_LEAST_TEXTS: Final = 10


def stop_words_of(words: Iterable[str]) -> frozenset[str]:
    """Return the stop words for a query of these words (lower-case)."""
    different = set(words)
    english = len(different & STOP_WORDS)
    count, language = max(((len(different & own), own) for own in (_GERMAN, _FRENCH, _SPANISH)), key=itemgetter(0))
    return STOP_WORDS | language if count >= _LEAST and count > english else STOP_WORDS


def mostly_foreign(texts: Iterable[Sequence[str]]) -> bool:
    """Return whether most of the texts whose language can be told, and ten or more, are in another one than English.

    ``texts``: their words in lower case.
    """
    english = foreign = 0
    for text in texts:
        words = [word for word in text if len(word) > 1]  # not the letters of a path or an address
        letters = "".join(words)
        if stop_words_of(words) != STOP_WORDS or 2 * sum(letter > "\u024f" for letter in letters) > len(letters) > 0:
            foreign += 1
        elif STOP_WORDS.intersection(words):
            english += 1
        else:
            foreign += len(words) >= _LEAST_WORDS
    return foreign >= _LEAST_TEXTS and foreign > english
