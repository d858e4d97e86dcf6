"""Whether a text repeats a memory: the same words and signs in the same order, apart from articles and the like."""

from __future__ import annotations

import unicodedata

import pytest

from signet_actors.domain.near_duplicates import repeats, search_text

HELD = "The staging database of the shop listens on port 5433."

SAME = [
    (HELD, HELD),
    ("the staging database of our shop listens on port 5433", HELD),
    ("Staging database of the shop listens on port 5433!", HELD),
    ("Please note: the staging database of the shop also listens on port 5433", HELD),
    ("“The staging database of the shop listens on port 5433”", HELD),
    ("'The staging database of the shop listens on port 5433.'", HELD),
    ("The “staging database” of the shop\n  listens on port `5433`", HELD),
    ("The staging database, of the shop, listens on port 5433…", HELD),
    ("THE STAGING DATABASE OF THE SHOP LISTENS ON PORT 5433", HELD),
    ("The stag\u200bing database of\u00a0the shop listens on port 5433\ufeff", HELD),
    ("The staging database of the shop listens on port \uff15\uff14\uff13\uff13\uff0e", HELD),
    ("Ｃａｆé opens at nine", "café opens at nine"),
    (unicodedata.normalize("NFD", "Café Größe: 12 Zoll"), "Café Größe: 12 Zoll"),
    ("Don\u2019t deploy on Fridays", "don't deploy on Fridays."),
    ("It\u2019s Ada\u2019s laptop", "It's Ada's laptop"),
    ("A deploy takes an hour", "deploy takes an hour"),
    ("The queue needs a restart", "queue needs restart"),
    ("Der Cache ist ein Redis", "Cache ist Redis"),
    ("Bitte beachten: der Server steht im Keller", "Der Server steht im Keller"),
    ("Déployez le vendredi !", "Déployez le vendredi"),
    ("Peut-on déployer ?", "Peut-on déployer?"),
    ("« Toujours signer »", "toujours signer"),
    ("数据库在五四三三端口。", "数据库在五四三三端口"),
    ("Soft\u00adware is signed", "Software is signed"),
    ("The separator of exports is ','", "Separator of exports is “,”."),
    ("Split rows at `;`, please", "split rows at ';' please"),
    ("She said: 'no deploys', twice", "She said no deploys twice"),
    ("No, deploy on Friday!", "no, deploy on Friday"),
    ("Staging Database of the Shop Listens on Port 5433", HELD),
    ("The US team owns the login", "the US team owns login;"),
    ("Please Note: IT pays the bill", "IT pays the bill."),
    ("The disk has 5 MB", "the disk also has 5 MB"),
    ("The Größe is 12", "Größe is 12"),
    ("Run ls; rm tmp", "run ls; rm tmp;"),
    ("The path is (a, b) here", "path is (a, b) here"),
    ("Set the mode to 'fast'", 'Set mode to "fast".'),
    ("The “fast” mode is on", "The `fast` mode is on"),
    ("DIE SERVER STEHEN IM KELLER", "Die Server stehen im Keller"),
]


@pytest.mark.parametrize(("text", "memory"), SAME)
def test_a_text_with_the_words_of_a_memory_repeats_it(text: str, memory: str) -> None:
    assert repeats(text, memory)
    assert repeats(memory, text)


DIFFERENT = [
    ("The staging database of the shop listens on port 5434", HELD),
    ("The staging database of the shop listens on port 5433 and 5434", HELD),
    ("The staging database listens on port 5433", HELD),
    ("The staging database of the shop never listens on port 5433", HELD),
    ("Ada and Bob may deploy to production and Carol", "Ada and Bob may deploy to production"),
    ("Never push to main", "Never push to main on weekends"),
    ("Bob reports to Ada", "Ada reports to Bob"),
    ("Copy the data from staging to production", "Copy the data to staging from production"),
    ("The warehouse robots charge at night", HELD),
    ("", HELD),
    ("the", "a"),
    # signs and operators
    ("Latency must be < 50 ms", "Latency must be > 50 ms"),
    ("Latency must be <= 50 ms", "Latency must be 50 ms"),
    ("Latency must be ≤ 50 ms", "Latency must be < 50 ms"),
    ("The offset is -5", "The offset is 5"),
    ("The offset is +5", "The offset is 5"),
    ("The offset is \u22125", "The offset is 5"),
    ("The flags are a & b", "The flags are a | b"),
    ("The result is a - b", "The result is a b"),
    ("The test is x == y", "The test is x != y"),
    ("Use !important here", "Use important here"),
    ("The range is [0,1)", "The range is (0,1]"),
    ("Call foo()", "Call foo"),
    ("Rate it 👍", "Rate it 👎"),
    # units, amounts, versions
    ("The discount is 5%", "The discount is 5"),
    ("It costs $500", "It costs €500"),
    ("The room has 20 °C", "The room has 20 °F"),
    ("The area is 10²", "The area is 102"),
    ("The disk has 5 GB", "The disk has 5 Gbit"),
    ("Pin ^1.2.3", "Pin ~1.2.3"),
    ("Pin 1.2.3", "Pin 1.2.3-rc1"),
    ("Pin v1.2", "Pin v1.2+"),
    # languages, globs, scopes, paths, flags
    ("It is written in C++", "It is written in C"),
    ("It is written in C#", "It is written in C"),
    ("It is written in F#", "It is written in F"),
    ("It is written in .NET", "It is written in NET"),
    ("Ignore **/*.ts", "Ignore *.ts"),
    ("Ignore *.ts", "Ignore ts"),
    ("Install @types/node", "Install types/node"),
    ("Write to #ops", "Write to @ops"),
    ("Run ./build", "Run /build"),
    ("Look in ~/x", "Look in /x"),
    ("Look in /A/b", "Look in /a/B"),
    ("Run go test ./...", "Run go test ./"),
    ("Run docker build .", "Run docker build"),
    ("Run cd ..", "Run cd ."),
    ("Put set -e first", "Put set e first"),
    ("Run curl -D", "Run curl -d"),
    ("Set A_B", "Set A B"),
    # signs in quotation marks, and a comma after an answer
    ("The separator of exports is ','", "The separator of exports is ';'"),
    ("The separator of exports is ','", "The separator of exports is"),
    ("The separator of exports is “,”", "The separator of exports is “;”"),
    ('The separator of exports is ";".', 'The separator of exports is ",".'),
    ("Split rows at `,` only", "Split rows at `;` only"),
    ("Split rows at ` , `", "Split rows at ` ; `"),
    ("Split rows at `, `", "Split rows at `,`"),
    ("Trennzeichen ist „;“", "Trennzeichen ist „,“"),
    ("Lines end with ';'", "Lines end with ':'"),
    ('The default of key is ""', "The default of key is"),
    ("The default of key is ''", "The default of key is"),
    ("The default of key is ' '", "The default of key is ''"),
    ("Quote names with '.' inside", "Quote names with ',' inside"),
    ("Never end a title with '.'", "Never end a title with"),
    ("Never end a title with '…'", "Never end a title with '.'"),
    ("Prefix it with ':' and go", "Prefix it with and go"),
    ("Join them by (',')", "Join them by (';')"),
    ("May the agent push? No, deploy on Friday", "May the agent push? No deploy on Friday"),
    ("No, tests on Friday", "No tests on Friday"),
    ("Nein, deployen am Freitag", "Nein deployen am Freitag"),
    ("Non, changements le vendredi", "Non changements le vendredi"),
    # capitals in words, and units
    ("The disk has 5 MB", "The disk has 5 Mb"),
    ("The link has 5 MB/s", "The link has 5 Mb/s"),
    ("It uses 5 mW", "It uses 5 MW"),
    ("The rate is 3 Gbit", "The rate is 3 GBIT"),
    ("IT pays the bill", "it pays the bill"),
    ("IT pays the bill", "It pays the bill"),
    ("The US team owns the login", "The us team owns login"),
    ("Tell US first", "Tell us first"),
    ("WHO approves the release", "Who approves the release"),
    ("The AID is paid", "The aid is paid"),
    ("Send it to PAM", "Send it to Pam"),
    ("It is written in GO", "It is written in Go"),
    ("The type is nullAble", "The type is nullable"),
    ("Call getUser first", "Call getuser first"),
    ("The flag is OPTIONAL", "The flag is optional"),
    ("The level is DEBUG", "The level is debug"),
    ("Ask ADA", "Ask Ada"),
    ("Die ANNA läuft nachts", "Die Anna läuft nachts"),
    ("Der Dienst heißt ÄRA", "Der Dienst heißt Ära"),
    ("Сервер США не работает", "Сервер сша не работает"),
    # code and commands
    ("Run ls; rm tmp", "Run ls rm tmp"),
    ("Run a && b; c", "Run a && b c"),
    ("Run a ; b", "Run a b"),
    ("Run `cd x; make`", "Run `cd x make`"),
    ("End it with x; y;", "End it with x y;"),
    ("Write for (;;) here", "Write for () here"),
    ("Call f(a, b)", "Call f(a b)"),
    ("Call f(a, b)", "Call f(a; b)"),
    ("The list is [1, 2]", "The list is [1 2]"),
    ("The object is {a: 1}", "The object is {a 1}"),
    ("The slice is x[1: 2]", "The slice is x[1 2]"),
    ("The tuple is (x, )", "The tuple is (x )"),
    ("The value is 'x'", "The value is x"),
    ('The value is "x"', "The value is x"),
    ("Compare it with 'null'", "Compare it with null"),
    ("The default is '5'", "The default is 5"),
    ("The key is 'on' in YAML", "The key is on in YAML"),
    ("Pass '-x' to it", "Pass -x to it"),
    ("Use print 'a', 'b'", "Use print a, b"),
    ("Write x = 'y'", "Write x = y"),
    # names and questions
    ("Team a owns it", "Team owns it"),
    ("Vitamin A is logged", "Vitamin is logged"),
    ("Is the cache on", "The cache is on"),
    ("Ship on Friday?", "Ship on Friday"),
    ("Ship on Friday?!", "Ship on Friday!"),
    ("Wird freitags ausgeliefert\uff1f", "Wird freitags ausgeliefert"),
    ("Schalte den Cache ein", "Schalte den Cache"),
    ("Let the workers die first", "Let the workers first"),
    ("We deploy on Fridays", "Deploy on Fridays"),
]


@pytest.mark.parametrize(("text", "memory"), DIFFERENT)
def test_a_text_that_says_anything_else_repeats_nothing(text: str, memory: str) -> None:
    assert not repeats(text, memory)
    assert not repeats(memory, text)


def test_ten_different_words_are_searched_for() -> None:
    assert search_text("A b1: “Alpha”, alpha, (beta)") == "alpha beta"
    assert len(search_text(" ".join(f"word{number}" for number in range(30))).split()) == 10
