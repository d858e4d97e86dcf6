"""What a plain sentence without a word such as *prefer* or *must* settles or asks for: decision, preference or rule.

Only the first sentence of a short text counts, and it needs a form that reports and instructions do not have: an
imperative with an alternative, a habit or a default, a choice, or what all need or only some may. English, German,
French, Spanish.

Source: docs/compatibility.md "Type inference".
"""

from __future__ import annotations

import re
from typing import Final, Literal

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.orders import sentences

Directive = Literal["decision", "preference", "rule"]
MAX_CHARS: Final = 500
"""A longer text is a note, an instruction or a report."""

_CHOSEN: Final = r"(?:chose|picked|selected|have chosen|['\u2019]ve chosen|have picked)"
_DECISION: Final = compile_later(
    r"(?:final |team |design |architecture )?decision(?: made)?\s?:\s*(?!(?:pending|open|tbd|none|not|unclear|later"
    r"|deferred|see|who|still)\b)\S"
    # English: we went with X, we chose X over Y, we use X instead of Y
    r"|(?:we|i|(?:the|our) team|the (?:group|backend|frontend|platform) (?:team|devs))\s?(?:(?:have|finally"
    r"|eventually|then|both|all|now)\s+){0,2}"
    r"(?:['\u2019]ve\s+)?(?:(?:settled on|opted (?:for|to|against)|standardi[sz]ed on|(?:are"
    r"|['\u2019]re) going with)\s+\S"
    r"|(?:went|gone) with\s+(?!(?:him|her|them|me|us|you|it|that|this|the (?:flow|kids|family)|friends|a friend|my"
    r"|his)\b)(?!.{0,200}\b(?:to (?:the|a|see|lunch|dinner)"
    rf"|yesterday|home)\b)\S|{_CHOSEN}\s(?!.{{0,80}}\bwrong\b)(?:.{{1,150}}\s(?:over|instead of|rather than|because"
    r"|since|for its|for the|for our|as our|as the)\s"
    rf"|(?-i:[A-Z`])[\w.`/-]{{1,40}}(?:\s[\w.]{{1,20}})?[.!]?$))"
    r"|we(?:['\u2019]ll)? (?:use|keep|ship|build|deploy|write|store|stay with)\s.{1,150}?\s(?:instead of|rather than)\s"
    # German
    r"|wir haben (?:uns )?(?:auf .{1,150} (?:geeinigt|festgelegt)|.{1,150}\b(?:statt|anstatt|anstelle"
    r"|gegen\u00fcber)\b.{1,150}\b(?:gew\u00e4hlt|genommen|ausgew\u00e4hlt|ausgesucht))\b"
    r"|(?:wir|das team|team) (?:setzen?|setzt) (?:ab jetzt |jetzt |k\u00fcnftig )?auf (?!dem\b|der\b)\S"
    r"|wir (?:nehmen|nutzen|verwenden|benutzen|w\u00e4hlen|w\u00e4hlten|nahmen)\s.{1,150}?\s(?:statt|anstatt"
    r"|anstelle)\s"
    # French
    r"|(?:nous avons|on a|l['\u2019]\u00e9quipe a) (?:finalement )?(?:opt\u00e9 pour\s\S|(?:choisi|pris"
    r"|retenu)\s.{1,150}?\s(?:plut\u00f4t qu|au lieu d|\u00e0 la place d|parce qu|pour (?:le|la|les|son|sa)\b))"
    r"|(?:on part|nous partons) (?:finalement )?sur (?!l[ae]s? (?:c\u00f4te|plage)|la\b.{1,20}\bdemain)\S"
    r"|(?:nous utilisons|on utilise)\s.{1,150}?\s(?:plut\u00f4t qu|au lieu d)"
    # Spanish
    r"|(?:hemos optado|optamos|el equipo opt\u00f3) por\s\S|nos quedamos con\s\S|nos decantamos por\s\S"
    r"|(?:elegimos|hemos elegido|escogimos|hemos escogido|el equipo eligi\u00f3|usamos"
    r"|utilizamos)\s.{1,150}?\s(?:en vez de|en lugar de|sobre|frente a|porque)\s",
    re.IGNORECASE,
)
_VERBS: Final = (
    "use|run|write|keep|put|add|name|call|format|commit|push|squash|rebase|test|ask|check|show|explain|create|make"
    "|store|import|export"
    "|return|log|throw|raise|read|update|bump|tag|sign|document|group|sort|wrap|place|define|declare|build|deploy"
    "|merge|open|close|review"
    "|lint|quote|indent|go|start|stop|skip|wait|confirm|tell|give|send|pin|mock|stub|validate|delete|remove|reply"
    "|answer|list|copy|move"
    "|split|limit|set|do|leave|pick|choose|take|switch|follow|include|exclude|omit|link|cite|mention|state|say|plan"
    "|generate|render|fetch"
    "|load|cache|bind|install|spell|summari[sz]e|rename|work|configure|target|pass|type|annotate|extract|inject"
    "|inline|favou?r|work"
)
_VERBE: Final = (
    r"(?:utilis|lanc|ex\u00e9cut|ajout|gard|nomm|demand|v\u00e9rifi|cr\u00e9|test|montr|expliqu|not|compil|format"
    r"|laiss|commenc|travaill|r\u00e9dig"
    r"|sign|r\u00e9pond|\u00e9cri|mett|pren|fai)(?:e|ez|er|s|t|te|re|tez|tre|ds|dre|vez|ites|vre)?"
)
_VERBO: Final = (
    r"(?:usa|use|usar|utiliza|utilice|utilizar|ejecuta|ejecute|ejecutar|lanza|corre|corra|escribe|escriba|escribir"
    r"|pon|poner|a\u00f1ade|a\u00f1adir"
    r"|revisa|revise|revisar|prueba|probar|formatea|formatear|haz|haga|hacer|crea|crear|comprueba|nombra|guarda"
    r"|mant\u00e9n|pregunta|responde|firma|firmar)"
)
_NIMM: Final = (
    r"(?:nutze?|nimm|verwende|benutze?|schreibe?|f\u00fchre?|lass|starte|formatiere|teste?|halte?|lege?|setze?"
    r"|nenne?|pr\u00fcfe?|mache?|baue?|rufe?"
    r"|erkl\u00e4re?|zeige?|committe|antworte|sortiere|speichere|gib|nehmt|nutzt|verwendet|arbeite)"
)
_ACTS: Final = (
    "commit|push|merg|deploy|releas|publish|delet|remov|drop|chang"
    "|edit|open|creat|install|add|overwrit|refactor|renam|touch|mov"
)
_OF_WORK: Final = (
    "commits?|push(?:es)?|prs?|pull requests?|merges?|releases?|changes?|deploys?|deployments?|features?|functions?"
    "|modules?|endpoints?"
    "|components?|migrations?|branch(?:es)?|hotfix(?:es)?|tickets?|classes|class|methods?|files?|merge requests?"
    "|mrs?|refactorings?"
)
_TEXTS: Final = (
    "commit(?: messages?|s)?|comments?|(?:the |our |new |production |test |public )?(?:code|codebase|apis?|tests"
    "|files|modules|components)|pull requests?|prs?"
    "|docs|docstrings?|(?:branch|file|variable|test) names?|titles?|subjects?|(?:the )?(?:subject|main|master"
    "|release|production|answers?)"
    "|replies|logs|(?:the )?repo"
)
_FOUND: Final = (
    "tests?|errors?|warnings?|failures?|results?|answers?|changes?|mentions?|references?|traces?|hits?|matches"
    "|users?|progress|sign|idea"
    "|one|data|entry|entries|news|output|activity|effect|difference|problem|need|access|coverage|conflicts?"
    "|vulnerabilit(?:y|ies)|leaks?|secrets? found"
)
_PREFERENCE: Final = compile_later(
    rf"(?:{_VERBS})\s(?!(?:\S{{1,40}}\s){{1,3}}(?:is|are|was|were|has|gets?)\b)"
    r"(?!of\b|by default|is\b|was\b|are\b|were\b|has\b|took\b|takes\b|and\b.{0,80}\b(?:is|are|was"
    rf"|were)\b)(?:.{{1,150}}?[\s,](?:instead of|rather than|in place of)\s"
    r"|.{0,150}?\b(?:before|after) (?:each|every)\s(?![^,;:]{0,80}\b(?:is|are|was|were)\b)|.{1,150}?\s(?:by default"
    r"|from now on|going forward|(?:wherever|whenever|where) possible|everywhere)\b"
    rf"|.{{0,150}}?\b(?:on|with|for|in) (?:each|every) (?:new |public )?(?:{_OF_WORK})\b"
    rf"|.{{0,150}}?\bbefore (?:you )?(?:{_ACTS})\w{{0,4}}\b|\S{{1,40}}(?:\s\S{{1,40}}){{0,3}}, not \S"
    r"|(?:the )?tests first\b)"
    r"|(?:ask|check with|confirm with|tell|warn) (?:me |us |for (?:my |an? )?\w{1,20} )?(?:first )?before\s\S"
    r"|wait for my\s|stick (?:to|with)\s\S|avoid\s(?!(?:is|was)\b)\S"
    r"|keep\s(?:[\w-]{1,30}\s){1,4}(?:short|small|simple|minimal|concise|brief|flat|under \d|below \d)"
    rf"|(?:from now on|going forward|from today on),?\s+(?:please |also |only )?(?:{_VERBS}|we|you|avoid|no)\s"
    rf"|no (?!(?:{_FOUND})\b)(?:[\w.-]{{1,30}} ){{1,3}}(?:in (?:{_TEXTS})|on (?:fri|mon|tues|wednes|thurs|satur"
    r"|sun)days?|without (?:tests?|a ticket|review|approval))[.!]?$"
    # German
    rf"|{_NIMM}\s(?:.{{1,150}}?\s(?:statt|anstatt|anstelle|standardm\u00e4\u00dfig|ab jetzt|ab sofort|k\u00fcnftig"
    rf"|von nun an)\b|.{{0,150}}?\b(?:vor|nach|bei) jede[mr]\s)"
    r"|(?!(?:wir|ich|er|sie|es|das|der|die|man|du|ihr)\s).{1,150}?\s(?:statt|anstatt|anstelle)\s.{1,150}\s(?:nutzen"
    r"|verwenden|nehmen|benutzen|schreiben|einsetzen|bevorzugen)[.!]?$"
    r"|(?:vor|nach|bei) jede[mr]\s.{1,150}\s(?:laufen lassen|ausf\u00fchren|starten|pr\u00fcfen|testen|aktualisieren"
    r"|schreiben|fragen|formatieren|erg\u00e4nzen|anpassen)[.!]?$"
    r"|vermeide\s\S|(?:[\w-]{1,40}\s){1,4}vermeiden[.!]?$|frage? (?:(?:mich|uns|immer|erst|bitte"
    r"|nach),? ){0,4}(?:vor|bevor)\b|vor dem (?:l\u00f6schen|mergen|pushen|deployen|committen)\s.{0,80}fragen[.!]?$"
    rf"|(?:ab jetzt|ab sofort|von nun an|k\u00fcnftig|in zukunft),?\s(?:bitte |nur |nur noch )*(?:{_NIMM}\s"
    rf"|.{{1,150}}\s(?:schreiben|nutzen|verwenden|nehmen|benutzen|machen|testen|antworten|committen"
    r"|ausf\u00fchren)[.!]?$)"
    r"|keine (?!(?:fehler|tests?|\u00e4nderungen|ergebnisse|antwort(?:en)?|daten|treffer|nutzer"
    r"|warnungen)\b)[\w-]{1,40} in (?:commit-nachrichten|commits|kommentaren|den? (?:tests|code|commits)"
    r"|pull requests|prs|antworten|dateinamen)[.!]?$"
    # French
    rf"|{_VERBE}\s.{{0,150}}?\b(?:au lieu d|plut\u00f4t qu|avant (?:chaque|de (?:commiter|pousser|fusionner"
    r"|supprimer|d\u00e9ployer))|apr\u00e8s chaque|\u00e0 chaque)"
    r"|(?:utilisez|utiliser)\s.{1,150}\spar d\u00e9faut\b|\u00e9vite(?:z|r)?\s\S|demande(?:z"
    r"|r)?(?:-moi)? (?:toujours |d['\u2019]abord )?avant\b"
    rf"|(?:\u00e0 partir de maintenant|d\u00e9sormais|dor\u00e9navant),?\s(?:{_VERBE}|on|nous|tu|vous|\u00e9vite\w?)\s"
    r"|pas (?:d['\u2019]|de )(?!(?:erreurs?|tests?|r\u00e9sultats?|changements?|donn\u00e9es"
    r"|r\u00e9ponses?)\b)[\w\u2019'-]{1,30} dans (?:les (?:messages de commit|commits|commentaires|tests|pr)|le code"
    r"|la branche main)[.!]?$"
    # Spanish
    rf"|{_VERBO}\s.{{0,150}}?\b(?:en vez de|en lugar de|antes de (?:cada|commitear|hacer (?:commit|push)|fusionar"
    r"|borrar|desplegar)|despu\u00e9s de cada|en cada)\s"
    r"|(?:use|usar|utilice|utilizar)\s.{1,150}\spor defecto\b|evit(?:a|e|ar)\s\S|(?:pregunta|consulta|avisa)(?:me"
    r"|nos)?(?: siempre| primero)? antes de\s|preg\u00fantame (?:primero )?antes de\s"
    rf"|(?:a partir de ahora|de ahora en adelante|desde ahora),?\s(?:{_VERBO}|evita|no uses)\s"
    r"|(?:nada de|sin) (?!(?:errores|tests|pruebas|resultados|cambios|datos"
    r"|respuesta)\b)[\w-]{1,30} en (?:los (?:mensajes de commit|commits|comentarios|tests|pr)|el c\u00f3digo"
    r"|main)[.!]?$",
    re.IGNORECASE,
)
_RULE: Final = compile_later(
    rf"(?:every|each|all|any)\s(?:[\w-]{{1,30}}\s){{0,2}}(?:{_OF_WORK})\s(?:[\w-]{{1,30}}\s){{0,4}}?(?:(?:has|have"
    r"|needs?) to\s(?!wait\b|take\b)\w"
    r"|(?:needs?|requires?|gets?|comes? with)\s(?:(?:an?|at least|one|two|three|its|their|own|passing"
    r"|\d{1,2})\s){0,4}(?:[\w-]{1,30}\s){0,2}?(?:approvals?|reviews?|reviewers?|sign-?offs?|signatures?|tests?"
    r"|changelog|tickets?|description|docstrings?|comments?|docs|documentation|types?|type hints|labels?|rollback"
    r"|owner|license|prefix|confirmation|changeset)\b)"
    r"|only\s(?:[\w@.'\u2019-]{1,30}\s){1,5}?(?:(?:may|(?:is|are) (?:allowed|permitted) to)\s(?!(?:be|have|not|well"
    r"|also|contain|take|fail)\b)\w"
    r"|can\s(?:merge|push|deploy|approve|release|publish|tag|force-push|rotate|sign off|cut)\b)"
    r"|(?:jede[rs]?|alle)\s(?:[\w-]{1,30}\s){0,2}?(?:commits?|prs?|pull requests?|merges?|releases?"
    r"|\u00e4nderung(?:en)?|features?|funktion(?:en)?|migration(?:en)?|endpunkte?|hotfix(?:es)?|tickets?)\s"
    r"(?:braucht|brauchen|ben\u00f6tigt|ben\u00f6tigen|erfordert)\s(?:[\w-]{1,30}\s){0,3}?(?:freigaben?|reviews?"
    r"|approvals?|tests?|ticket|beschreibung|zustimmung|changelog(?:-eintrag)?|rollback|unterschrift)\b"
    r"|(?:chaque|toute?s?|tous)\s(?:les\s)?(?:[\w-]{1,30}\s){0,2}?(?:commits?|pr|prs|pull requests?|versions?"
    r"|releases?|modifications?|changements?|fonctions?|migrations?|d\u00e9ploiements?|branches?)\s"
    r"(?:n\u00e9cessite(?:nt)?|requi(?:ert|\u00e8rent)|exige(?:nt)?|a besoin d['\u2019e]"
    r"|ont besoin d['\u2019e])\s?(?:[\w-]{1,30}\s){0,3}?(?:approbations?|revues?|relectures?|validations?|tests?"
    r"|ticket|description|accord)\b"
    r"|seul(?:e|s|es)?\s(?:[\w@-]{1,30}\s){1,4}?(?:(?:a|ont) le droit d|(?:est|sont) autoris\u00e9e?s? \u00e0"
    r"|peu(?:t|vent) (?:fusionner|merger|d\u00e9ployer|pousser|approuver|publier|valider)\b)"
    r"|(?:cada|tod[oa]s?)\s(?:l[oa]s\s)?(?:[\w-]{1,30}\s){0,2}?(?:commits?|pr|prs|pull requests?|versi\u00f3n"
    r"|releases?|cambios?|funci\u00f3n|funciones|migraci\u00f3n|despliegues?)\s"
    r"(?:necesitan?|requieren?|exigen?)\s(?:[\w-]{1,30}\s){0,3}?(?:aprobaci(?:\u00f3n|ones)|revisi(?:\u00f3n|ones)"
    r"|tests?|pruebas?|ticket|descripci\u00f3n)\b"
    r"|(?:solo|s\u00f3lo|solamente|\u00fanicamente)\s(?:[\w@-]{1,30}\s){1,4}?(?:puede[n]? (?:fusionar|mergear|hacer"
    r"|desplegar|aprobar|publicar|subir)\b|tienen? permiso para)",
    re.IGNORECASE,
)
_INSTRUCTS: Final = compile_later(
    r"```|\bto (?:fix|debug|see|reproduce|reset|restart|work around|get rid)\b|\b(?:fails|failed|hangs|crashes"
    r"|crashed)\b|\bif (?:it|that|this) ",
    re.IGNORECASE,
)
"""An instruction for a certain case is no preference."""


def directive_type(text: str) -> Directive | None:
    """Return what the first sentence of a short text is in form; None for a report, an instruction or a question."""
    if len(text) > MAX_CHARS:
        return None
    said = next(sentences(text), "")
    if _DECISION.match(said):
        return "decision"
    if _RULE.match(said):
        return "rule"
    return "preference" if _PREFERENCE.match(said) and not _INSTRUCTS.search(text) else None
