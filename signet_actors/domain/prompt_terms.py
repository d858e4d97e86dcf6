"""Find what a prompt is about: its terms, and the texts with which memories are searched.

What a harness puts into a prompt is not part of what the user said. Of a long prompt, or one with pasted text,
the user's own sentences are searched for, and the exact names of all of it. Each scanner takes linear time.

Source: docs/compatibility.md "Worked examples: prompt terms"; docs/quality.md "Pasted text".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from signet_actors.domain.exact_names import exact_names
from signet_actors.domain.normalization import MAYBE_CJK
from signet_actors.domain.program_text import OFF_SPELLINGS, said_by_user
from signet_actors.domain.query_words import MAX_QUERY_CHARS, words_of
from signet_actors.domain.stop_words import stop_words_of
from signet_actors.domain.transcripts.unanswered import plain_question

MAX_TERMS: Final = 12
LEAST_TERMS: Final = 2
"""So many terms of the assistant's last message count beside fewer terms of the user's."""
_MOST_OF_FOLLOW_UP: Final = 4
"""A question with more terms says by itself what it is about."""
_STATEMENTS: Final = 2
_POINTING: Final = """
    again it its that that's these this those there they them then
    da dabei dadurch dafür dagegen damit daran darauf darüber davon dazu das dem den denn der die dies diese diesem
    diesen dieser dieses doch dort es sie
    ça c'est ce cela celle celles celui cet cette là y
    ahí allí aquel aquella ello esa ese eso esta este esto lo
"""
_POINTERS: Final = frozenset(_POINTING.split())
"""Words of a question that may stand for what was said before."""
_MOST_OF_WHOLE: Final = 600
_LEAST_OF_WHOLE: Final = 0.6
"""A prompt with pasted text, or with many words, is also searched for as a whole, and must be answered more surely."""
_CLOSING: Final = " \t\r\n\"')*_"
MIN_CHARS: Final = 3
_SHORT_NAME: Final = re.compile(r"(?<![\w-])(?:[A-Z][A-Z\d]|[a-z]\d)(?![\w-])")
"""A shorter word counts if it is written as a name (CI, S3, k8), or is one of these in lower case."""
_ABBREVIATIONS: Final = "ai cd ci db gh hr id ip js ml os pr qa tf ts ui ux vm"
_SHORT_NAMES: Final = frozenset(_ABBREVIATIONS.split())
MAX_SEARCHES: Final = 8

SWITCHED_OFF: Final = "[signet: memory does not work now, because the user has switched it off for this session]"
"""What the model is told then."""
_BLANKS: Final = " \t\r\n\u00a0\u200b\u2060\ufeff"
_OFF_REQUEST: Final = re.compile(
    rf"^## My request(?: for Codex)?:[{_BLANKS}]{{0,99}}{OFF_SPELLINGS}", re.MULTILINE | re.IGNORECASE
)
"""The mark below the heading of a request, whatever Codex puts before it."""
_IN_FRONT: Final = (
    rf"[{_BLANKS}_~`\"'\u201c\u201e\u2018]|\*(?!\s)",
    r"</?image\b[^>\n]{0,200}>",
    r"\[(?:Image|Pasted text|File|Audio|Video)\b[^\]\n]{0,200}\]",
    r"@\"[^\"\n]{1,1000}\"",
    r"@[^\s\"]{1,1000}",
    r"[/$][a-z][\w:.-]{0,100}(?=\s)",
    r"(?:[-\u2013\u2022]|#{1,6}|\d{1,2}[.)])[ \t]",
    rf"\((?={OFF_SPELLINGS}\))",
    r"(?:ultrathink|megathink|think hard(?:er)?)\b[,.:]?(?=\s)",
    r"\U0001f4ce\ufe0f?[^\[\n]{1,200}\.\w{1,10}(?=\s)",
    r"[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?",
)
"""What is typed or pasted in front of a prompt: marks of style and lists, pictures, files, the name of a command, how
much to think.
"""
_QUOTING: Final = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u201e": "\u201c\u201d", "\u2018": "\u2019"}
"""A prompt that goes on behind the closing one speaks of the mark."""
_OFF: Final = re.compile(
    rf"(?:(?>(?:>[^\n]*\n)*[{_BLANKS}]*)|(?>(?:{'|'.join(_IN_FRONT)})*))(?P<mark>{OFF_SPELLINGS})", re.IGNORECASE
)
"""The mark at the begin of a prompt, also behind the lines to which it answers, such as the question of a tool."""

_FILLERS: Final = frozenset(
    {"hello", "hey", "let", "lets", "ok", "okay", "one", "ones", "please", "thank", "thanks", "use", "yes"}
)
"""Words of a request that say nothing about its subject."""
_ASSENTING: Final = """
    yeah yep sure fine great perfect nice cool good continue continuing proceed ahead
    bitte danke dankeschön ja nein gut prima super passt genau klar hallo mach mache machen weiter weitermachen los
    merci oui non bien parfait d'accord accord continuez continuer vas-y vas allez bonjour salut svp plaît
    gracias por favor sí vale bueno perfecto hola sigue sigamos seguir continúa continuar adelante dale
"""
_ASSENT: Final = frozenset(_ASSENTING.split())
"""A request of nothing but these words asks for nothing."""
_ASKED_OF_PASTED: Final = """
    above below bug cause caused causes changes code crash crashes debug diff error errors exception explain
    fail failed failing fails failure fix following get gets getting happen happened happening happens help
    here idea issue keep keeps line log logs look mean meaning means message output problem review run running
    see seeing snippet solve stack think this trace try trying understand warning wrong bedeutet behebe
    beheben erkläre fehler fehlermeldung fehlers hilf hilfe lösen meldung passiert sagt schau tun cela
    corriger dire erreur expliquer faire problème résoudre signifie veut arreglar arreglo ayuda corregir
    explicar falla fallo hacer problema resolver significa solucionar
"""
_ABOUT_PASTED: Final = frozenset(_ASKED_OF_PASTED.split())
"""Words of a request about pasted text that say nothing about its subject."""
_ASKED_OF_WORK: Final = "test tests testing check checks teste testen prüf prüfe prüfen tester vérifie prueba"
_DONE_TO_IT: Final = _ABOUT_PASTED | frozenset(_ASKED_OF_WORK.split())
"""Words of a request that say nothing about its subject if it speaks only of "it" or "that"."""
_MENTION: Final = re.compile(r"<@[!&]?\d{1,30}>")
_METADATA: Final = re.compile(r"untrusted[ -]metadata", re.IGNORECASE)
_FENCE: Final = "```"
_MAX_GAP_CHARS: Final = 100
"""Between the words that mark metadata and its block."""
_AROUND: Final = "!\"'()*,.:;<>?[]`{}\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u00bf\u00a1"
_PUNCTUATION: Final = "!\"#$%&'()*,./:;<=>?@[\\]^_`{|}~-"

_GREETINGS: Final = """
    good morning|good afternoon|good evening|good night|guten morgen|guten tag|guten abend|gute nacht|schönen abend
    bonjour|bonsoir|bonne nuit|buenos días|buenas tardes|buenas noches|hello|hi|hey|hallo|moin|servus|hola|salut
"""
_GREETING: Final = frozenset(
    each.strip() for line in _GREETINGS.split("\n") for each in line.split("|") if each.strip()
)
_OF_TEXTS: Final = """
    translate rephrase reword paraphrase proofread spell pronounce transliterate capitalize capitalise
    übersetze übersetz umformuliere formuliere buchstabiere
    traduis traduisez traduire reformule épelle traduce traducir traduzca reformula deletrea
"""
_OF_TEXT: Final = frozenset(_OF_TEXTS.split())
"""Words of an order to do something with a text that the prompt quotes: it is not asked what the text says."""
_BEFORE_ORDER: Final = 4
_QUOTED: Final = re.compile(
    r"(?<!\w)'[^'\n]{1,400}'(?!\w)|\"[^\"\n]{1,400}\"|`[^`\n]{1,400}`|[\u201c\u201e][^\u201c\u201d\n]{1,400}[\u201c\u201d]"
    r"|\u2018[^\u2019\n]{1,400}\u2019|\u00ab[^\u00bb\n]{1,400}\u00bb|:[^:]*$"
)

_ASKS: Final = ("?", "\uff1f", "\u061f")
_ASKED_BY: Final = """
    are can could did do does how is should was were what when where which who whose why will would
    wann warum was welche welchem welchen welcher welches wem wen wer weshalb wie wieso wo wohin woher
    comment combien où pourquoi quand quel quelle quelles quels qui quoi
    cómo cuál cuáles cuándo cuánto dónde qué quién
"""
_QUESTION_WORDS: Final = frozenset(_ASKED_BY.split())
_SENTENCE_END: Final = re.compile(r"([.!?\u2026])\s+|([\u3002\uff01\uff1f\u061f])")
_MAX_WINDOW_CHARS: Final = 400
_TIME: Final = r"\d{4}[-/.]\d\d[-/.]\d\d|\d\d:\d\d|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:|\d{10}|[EWIF]\d{4} "
_LEVEL: Final = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC|FAILED|PASSED)\b"
_MESSAGE: Final = (
    r"(?:(?:PHP )?(?:[Ee]rror|[Ww]arning|Notice|[Ff]atal)|note|help|panic|info|hint|npm ERR!)\b[^.!?:]{0,40}:"
    r"|[\w.$]{0,200}(?:Error|Exception)\b.{0,3}(?::|$)|Exception in |exit (?:status|code) \d|Caused by|Traceback"
    r"|(?:bash|cargo|clang|curl|docker|gcc|git|go|java|kubectl|ld|make|mysql|node|npm|perl|php|pip|psql|python3?|ruby|sh"
    r"|ssh|sudo|wget|yarn|zsh)(?: [\w/.-]{1,40}){0,2}: |> Task|Step \d|#\d{1,3} "
    r"|[\w./\\@-]{1,200}[(:]\d"
)
_CODE: Final = (
    r"\s*(?:at \S|File \"|\.\.\. \d|goroutine \d|-->|\||\^|~~|[+-](?! )|@@|[$>] |[{}\[\]<]|\"[\w.-]{1,60}\"\s?:)"
)
_LOG_START: Final = re.compile(rf"\W{{0,3}}(?:{_TIME}|{_LEVEL}|{_MESSAGE})|{_CODE}|diff --git|\t| {{4}}", re.ASCII)
_LOG_END: Final = re.compile(r"(?:[{};\[(\\|]|=>|->)$")
_PAIR: Final = re.compile(r"(?<![\w.])[\w.]{1,40}=\S")
_MARKS: Final = re.compile(r"[^\w\s.,'!?\u2019\u3000-\u303f\uff00-\uffef-]|_|\d")
_MOST_MARKS: Final = 0.22
_OF_ERRORS: Final = (
    *("abort", "can't", "cannot", "corrupt", "could not", "denied", "erreur", "error", "exception", "fail", "fatal"),
    *("fehler", "invalid", "no such", "panic", "refus", "unable"),
)


class Search(NamedTuple):
    """What to look for. ``is_of_long``: a statement of a long prompt.

    ``is_part``: it is cut from one, or pasted, so a memory need not answer all of it. ``is_names``: it consists of
    exact names, so a memory has to have one. ``least``: of less relevance nothing is wanted.
    """

    text: str
    is_of_long: bool = False
    is_part: bool = False
    is_names: bool = False
    least: float = 0.0


class PromptTerms(NamedTuple):
    """``terms``: of the prompt, and of the assistant's last message if it has few. ``searches``: what to look for.

    ``names``: the exact names of the prompt with what each tells; the first search is for memories with these, too.
    ``asked``: of a plain question its kind and its only telling word.
    """

    terms: tuple[str, ...]
    searches: tuple[Search, ...]
    names: Mapping[str, float]
    asked: tuple[str, str] | None = None


def prompt_terms(prompt: str, last_assistant_message: str = "") -> PromptTerms:
    """Return what the prompt is about. A short prompt is searched for as it is, a long one by its own sentences."""
    said = _without_material(_without_greeting(said_by_user(without_metadata(prompt))))
    names = exact_names(said)
    own = _terms(said[:MAX_QUERY_CHARS])
    if _ASSENT.issuperset(own) or (_refers_back(said) and _DONE_TO_IT.issuperset(own)):
        own = []
    if _FENCE in said or any(map(is_pasted, said.splitlines())) or len(own) > MAX_TERMS or len(said) > MAX_QUERY_CHARS:
        return _of_long(said, names)
    others = [term for term in _terms(last_assistant_message[:MAX_QUERY_CHARS]) if term not in own]
    terms = tuple([*own, *others[: max(LEAST_TERMS, len(own))]][:MAX_TERMS])
    text = " ".join(said.split()) if len(own) >= LEAST_TERMS else " ".join(terms)
    searches = [Search(text)] if text else []
    if len(own) <= _MOST_OF_FOLLOW_UP and said.rstrip(_CLOSING).endswith(_ASKS) and _refers_back(said):
        # "And why not there?" asks about what the agent has said last.
        statements = [_window(each, left_out=_FILLERS) for each in _statements(last_assistant_message)]
        searches += [Search(each, is_of_long=True, is_part=True) for each in statements]
        names = names or exact_names(last_assistant_message[-_MAX_WINDOW_CHARS:])
    elif len(own) >= LEAST_TERMS:  # what is said around a question lowers the share of its words in a memory
        asked = [each for each in _sentences(text) if each.endswith(_ASKS) and each != text]
        searches += [Search(each) for each in asked[-_STATEMENTS:] if len(_terms(each)) >= LEAST_TERMS]
    return PromptTerms(terms, tuple(searches), names, plain_question(said))


def _without_greeting(said: str) -> str:
    """Return the prompt without the greeting with which it begins."""
    for count in (2, 1):
        tokens = said.split(None, count)
        if " ".join(tokens[:count]).strip(_AROUND).casefold() in _GREETING:
            return tokens[count] if len(tokens) > count else ""
    return said


def _without_material(said: str) -> str:
    """Return the prompt without the text that it says something is to be done with: quoted, or behind a colon."""
    begin = said[:_MAX_WINDOW_CHARS].casefold().split()[:_BEFORE_ORDER]
    return said if _OF_TEXT.isdisjoint(token.strip(_AROUND) for token in begin) else _QUOTED.sub(" ", said)


def _refers_back(question: str) -> bool:
    return any(token.strip(_AROUND) in _POINTERS for token in question.lower().split())


def _statements(answer: str) -> list[str]:
    """Return the last sentences of an answer that say something, and no question back."""
    sentences = _sentences(" ".join(answer[-_MAX_WINDOW_CHARS:].split()))
    telling = [each for each in sentences if not each.endswith(_ASKS) and len(_terms(each)) > LEAST_TERMS]
    return telling[-_STATEMENTS:]


def switches_off(prompt: str) -> bool:
    """Return whether a prompt, behind what a program put before it, switches memory off for its session."""
    said = without_metadata(prompt)
    begin = said_by_user(said).lstrip(_BLANKS)
    mark = _OFF.match(begin)
    if mark is not None:
        before, behind = begin[: mark.start("mark")].rstrip(_BLANKS), begin[mark.end() :]
        is_quoted = before[-1:] in _QUOTING and behind[:1] in _QUOTING[before[-1:]] and behind[1:].strip(_CLOSING) != ""
        return not is_quoted
    return _OFF_REQUEST.search("```".join(said.split("```")[::2])) is not None


def is_pasted(line: str) -> bool:
    """Return whether a line looks like a part of a log, a trace, code or a diff, and not like prose."""
    bare = line.strip()[:_MAX_WINDOW_CHARS]
    if not bare or (bare.endswith(_ASKS) and len(bare.split()) >= 3 and _LOG_START.match(bare) is None):
        return False
    return (
        _LOG_START.match(line) is not None
        or _LOG_END.search(bare) is not None
        or len(_PAIR.findall(bare)) > 1
        or len(_MARKS.findall(bare)) > _MOST_MARKS * len(bare)
    )


def _of_long(said: str, names: Mapping[str, float]) -> PromptTerms:
    """Return what a long prompt is about: its questions, its beginning and end, its errors, and its names."""
    paragraphs, errors = _parts(said)
    sentences = [each for paragraph in paragraphs for each in _sentences(paragraph)]
    questions = [each for each in sentences if each.endswith(_ASKS)][::-1]
    asked = [*questions[:2], *questions[2:][-1:]]
    own = [*asked, *paragraphs[-1:], *paragraphs[:1], *paragraphs[-2:0:-1]]
    passages = []
    for at, text in enumerate(own[: 2 * MAX_SEARCHES]):
        if at < len(asked):
            text = _asked(text)  # noqa: PLW2901
        is_cut = len(_terms(text)) > MAX_TERMS
        passages.append(Search(_window(text, from_end=at <= len(asked)), is_cut or at >= len(asked), is_cut))
    pasted = [_window(text, from_end=True, left_out=_FILLERS) for text in (*errors[-1:], *errors[:1])]
    passages[len(asked) + 2 : len(asked) + 2] = [Search(text, is_of_long=True, is_part=True) for text in pasted]
    unique = {search.text: search for search in reversed(passages)}
    searches = [search for text, search in reversed(unique.items()) if sum(map(_size, _terms(text))) >= LEAST_TERMS]
    del searches[MAX_SEARCHES:]
    if len(said) <= _MOST_OF_WHOLE and own and (errors or not any(map(is_pasted, said.splitlines()))):
        searches.append(Search(" ".join(said.split()), least=_LEAST_OF_WHOLE))
    if names:
        searches.insert(0, Search(" ".join(islice(names, MAX_TERMS)), is_of_long=True, is_part=True, is_names=True))
    shown = sorted(searches, key=lambda search: search.is_names)
    terms = dict.fromkeys(term for search in shown for term in _terms(search.text))
    return PromptTerms(tuple(terms)[:MAX_TERMS], tuple(searches), names)


def _parts(said: str) -> tuple[list[str], list[str]]:
    """Return the paragraphs of the user's own lines, and the pasted lines that tell of an error."""
    paragraphs: list[list[str]] = [[]]
    errors: list[str] = []
    lines = said.splitlines()
    fences = sum(line.lstrip().startswith(_FENCE) for line in lines) // 2 * 2
    in_fence = False
    for line in lines:
        if fences and line.lstrip().startswith(_FENCE):
            in_fence, fences = not in_fence, fences - 1
            paragraphs.append([])
        elif in_fence or is_pasted(line):
            paragraphs += [[each] for each in _sentences(line) if each.endswith(_ASKS)] or [[]]
            if any(map(line.lower().__contains__, _OF_ERRORS)):
                errors.append(line)
        elif line.strip():
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([])
    return [" ".join(paragraph) for paragraph in paragraphs if paragraph], errors


def _sentences(text: str) -> list[str]:
    return [each.strip() for each in _SENTENCE_END.sub(r"\1\2\n", text).splitlines()]


def _asked(question: str) -> str:
    """Return a long question from its last question word on: what stands before it may be a log on the same line."""
    tokens = question[-_MAX_WINDOW_CHARS:].split()
    for at in range(len(tokens) - 1, 0, -1):
        if tokens[at].lower() in _QUESTION_WORDS and len(_terms(" ".join(tokens[at:]))) >= LEAST_TERMS:
            return question if len(_terms(question)) <= MAX_TERMS else " ".join(tokens[at:])
    return question


def _window(text: str, *, from_end: bool = False, left_out: frozenset[str] = _ABOUT_PASTED) -> str:
    """Return the beginning or the end of ``text`` with at most ``MAX_TERMS`` terms, without the words ``left_out``."""
    text = text[-_MAX_WINDOW_CHARS:] if from_end else text[:_MAX_WINDOW_CHARS]
    tokens = text.split()
    kept: list[str] = []
    size = 0
    for token in reversed(tokens) if from_end else tokens:
        if token.strip(_AROUND).lower() in left_out:
            continue
        size += len(_terms(token))
        if size > MAX_TERMS and kept:
            break
        kept.append(token)
    return " ".join(reversed(kept) if from_end else kept)


def _size(term: str) -> int:
    """Return for how many words a term counts: a run of Chinese or Japanese is several."""
    return max(1, len(term) // 2) if MAYBE_CJK.search(term) else 1


def without_metadata(prompt: str) -> str:
    """Return the prompt without mentions and without blocks of JSON that are marked as untrusted metadata."""
    kept: list[str] = []
    at = 0
    for mark in _METADATA.finditer(prompt):
        opening = prompt.find(_FENCE, mark.end(), mark.end() + _MAX_GAP_CHARS)
        closing = -1 if opening < 0 or mark.start() < at else prompt.find(_FENCE, opening + len(_FENCE))
        if closing < 0:
            continue
        kept.append(prompt[at : max(at, prompt.rfind("\n", at, mark.start()) + 1)])
        at = closing + len(_FENCE)
    kept.append(prompt[at:])
    return _MENTION.sub(" ", "".join(kept)).strip()


def _terms(text: str) -> list[str]:
    """Return hyphenated names and then words, in lower case and text order, each once."""
    lower = text.lower()
    hyphenated = (token.strip(_PUNCTUATION) for token in lower.split() if "-" in token)
    names = [token for token in hyphenated if "-" in token and all(part.isalnum() for part in token.split("-"))]
    words = words_of(lower)
    left_out = stop_words_of(words) | _FILLERS
    short = {match.lower() for match in _SHORT_NAME.findall(text)} | _SHORT_NAMES
    telling = (
        word
        for word in words
        if word not in left_out
        and not word.isdecimal()
        and (len(word) >= MIN_CHARS or word in short or MAYBE_CJK.search(word))
    )
    return list(dict.fromkeys([*names, *telling]))
