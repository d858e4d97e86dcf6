"""Whether a prompt orders work, and which of its words tell what the work is about.

"Add a button to delete a row" is about rows, not about what was added and deleted before.

Source: docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.query_words import words_of

_POLITE_WORDS: Final = """
    please now then also and ok okay next first great good thanks can could would will you we let lets s us just i
    want need to bitte kannst könntest du mal jetzt dann auch noch und wir lass uns peux tu maintenant et puis puedes
    por favor ahora y
"""
_ACTS: Final = """
    add adjust allow bump build change check clean commit convert create debug decrease delete deploy disable document
    enable explain extend extract fix format generate handle hide implement improve increase install investigate make
    merge migrate move open optimize polish prepare push refactor release remove rename replace review rewrite run set
    setup show simplify sort split start stop style test tidy turn update upgrade use write
    ändere aktualisiere baue behebe benenne entferne erkläre erstelle erweitere füge installiere korrigiere lösche mach
    mache prüfe schau schreib schreibe teste verschiebe zeig zeige
    ajoute change corrige crée déplace écris explique fais installe montre renomme supprime teste vérifie
    actualiza agrega añade arregla borra cambia corrige crea elimina escribe explica haz instala mueve muestra prueba
    renombra revisa
"""
_THINGS: Final = """
    branch bug button case class code comment component endpoint error example failure feature field file form function
    icon issue line list message method modal name page project script step string test type variable version warning
    way work
    änderung änderungen datei dateien fehler feld funktion klasse knopf liste seite tests typ zeile
    bouton champ classe erreur fichier fonction ligne archivo botón campo clase fallo función lista línea página
"""
"""What nearly every order of work is about."""
THINGS: Final = frozenset(_THINGS.split())
_COMMON: Final = frozenset(f"{_ACTS} {_THINGS}".split())
_VERBS: Final = frozenset(_ACTS.split())
_POLITE: Final = frozenset(_POLITE_WORDS.split())
_ENDINGS: Final = ("ing", "es", "ed", "s", "d")


def orders_work(prompt: str) -> bool:
    """Return whether the prompt begins with what is to be done."""
    return next((word for word in words_of(prompt) if word not in _POLITE), "") in _VERBS


def tells_subject(word: str) -> bool:
    """Return whether a word of such a prompt tells what the work is about, in any of its forms."""
    forms = {word, *(word.removesuffix(ending) for ending in _ENDINGS)}
    return _COMMON.isdisjoint(forms | {f"{form}e" for form in forms})
