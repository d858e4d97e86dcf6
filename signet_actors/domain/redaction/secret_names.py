# ruff: noqa: RUF001  the letters of other languages are meant
"""Words for passwords and other credentials in the languages that people write, as patterns for folded text.

Look-alike letters are ASCII in the text that is searched (``letters.py``), so the words are translated likewise.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.redaction.letters import plain_letters
from signet_actors.domain.windowed_search import windowed_matches


class Language(NamedTuple):
    """How a language says what a password is. A middle dot stands for a blank.

    - ``verbs`` stand between the name and the value: "the password *is* …". They count after names of all languages.
    - ``free``: verbs between which and the name up to four words may stand: "parola *bazei* este …".
    - ``own``: verbs that are other words elsewhere ("on", "e"), so that they count only after ``names``.
    - ``glued``: particles without a blank around them.
    - ``after``: verbs behind the value.
    - ``joiners``: words that begin what the password is for, between the name and a sign or a verb.
    """

    names: str
    verbs: str = ""
    joiners: str = ""
    free: str = ""
    own: str = ""
    glued: str = ""
    after: str = ""


LANGUAGES: Final = {
    "English": Language(
        "password passcode passphrase pass·phrase p/w pass passwd pwd psw psk pw seed·phrase recovery·phrase wifi·code"
        " wlan·code identified·by",
        "is was are has·been will·be should·be must·be can·be now set·to changed·to reset·to equals would·be might·be"
        " may·be could·be has·to·be needs·to·be ought·to·be used·to·be isn't isn’t wasn't wasn’t has·the·value"
        " has·value with·the·value with·value defaults·to still turned·out·to·be should·really·be"
        " should·have·the·value is·supposed·to·be",
        "for of to on in at from as·of since until starting effective",
    ),
    "German": Language(
        "passwort kennwort zugangscode wlan-schlüssel wlan·schlüssel netzwerkschlüssel",
        "ist war wurde lautet heißt heisst jetzt wäre müsste sollte dürfte könnte muss soll hat·den·wert mit·dem·wert",
        "für fürs von vom zum zur im am der des ab seit",
    ),
    "French": Language(
        "mdp mot·de·passe mot·de·passe·d'application passe mot·secret code·secret code·wifi clé·wifi clé·wi-fi clé·wpa",
        "est c'est sera serait doit·être devrait·être n'est n’est a·la·valeur a·pour·valeur avec·la·valeur vaut",
        "du de la le pour à·partir·de à·partir·d'aujourd'hui depuis",
    ),
    "Spanish": Language(
        "contraseña clave·secreta clave",
        "es fue era será sería debe·ser debería·ser tiene·que·ser sigue·siendo ya·no·es no·es tiene·el·valor"
        " con·el·valor vale",
        "del de para desde a·partir·de",
    ),
    "Catalan": Language("contrasenya", "és", "del de per"),
    "Portuguese": Language("senha palavra-passe palavra·passe", "é foi era", "do da de para"),
    "Italian": Language("password·dell'app parola·chiave parola·d'ordine parola·d'accesso parola", "è", "di per del"),
    "Dutch": Language("wachtwoord toegangscode", "is was", "van voor"),
    "Polish": Language("hasło hasło·aplikacji hasła hasłem", "jest brzmi", "do dla na"),
    "Czech": Language("heslo heslo·aplikace", "je byl", "k na pro do"),
    "Hungarian": Language("jelszó jelszava jelszavam", own="az a"),
    "Romanian": Language("parola parolă parolei", free="este", own="e"),
    "Turkish": Language("parolası parolam parola şifresi şifrem şifreniz şifre", after="dir dır tir olarak"),
    "Swedish": Language("lösenordet lösenord", "är var lyder", "till för på"),
    "Danish": Language("adgangskoden adgangskode kodeordet kodeord", "er var lyder", "til for på"),
    "Norwegian": Language("passordet passord", "er var", "til for på"),
    "Finnish": Language("salasana", own="on"),
    "Vietnamese": Language("mật·khẩu", "la", "của cho", free="là"),
    "Indonesian": Language("kata·sandi kata·sandinya", "yaitu", "untuk dari", free="adalah ialah"),
    "Russian": Language("пароль пароль·приложения пароля пароли", "это", "от для к на"),
    "Ukrainian": Language("пароль", "це", "до від для"),
    "Bulgarian": Language("парола паролата", joiners="за на", own="е"),
    "Greek": Language("κωδικός·πρόσβασης κωδικός", "ήταν", "για του της", free="είναι"),
    "Chinese": Language("密码 密碼 口令", glued="是 为 為"),
    "Japanese": Language("パスワード ﾊﾟｽﾜｰﾄﾞ パスフレーズ 合言葉", glued="は が"),
    "Korean": Language("비밀번호 비번 암호 패스워드", glued="는 은"),
    "Arabic": Language("كلمة·المرور كلمة·مرور كلمة·السر كلمة·سر", free="هي هو"),
    "Persian": Language("رمز·عبور گذرواژه کلمه·عبور پسورد", after="است هست"),
    "Hebrew": Language("סיסמה סיסמא סיסמת", free="היא הוא"),
    "Hindi": Language("पासवर्ड", "है", after="है था"),
    "Thai": Language("รหัสผ่าน", glued="คือ เป็น"),
}
"""The one place that says how people name and state a password; docs/operations.md lists the languages."""


_ADVERBS: Final = """
    now still currently presently set·to changed·to reset·to again actually really just simply probably always in·fact
    not apparently definitely indeed maybe perhaps supposedly only exactly no·longer never also of·course i·think
    jetzt nun derzeit aktuell momentan eigentlich wirklich einfach nur wahrscheinlich immer immer·noch noch doch wohl
    übrigens vermutlich tatsächlich angeblich nicht nicht·mehr weiterhin maintenant actuellement en·fait vraiment juste
    simplement probablement toujours encore pas plus ahora actualmente en·realidad realmente simplemente solo sólo
    probablemente siempre todavía aún de·hecho agora adesso attualmente teraz
"""
"""What may stand around a verb of ``Language``: ``the password is actually …``, ``… probably is …``."""
CREDENTIAL_WORDS: Final = """
    secret token credentials credential jeton·d'accès jeton zugriffstoken zugangstoken
    access·code auth·code clé·api clé·d'api clé·secrète clave·api clave·de·api chave·api
    chave·de·api chiave·api chiave·segreta klucz·api api-schlüssel zugangsschlüssel geheimschlüssel anahtarı
    токен ключ·api апи·ключ секретный·ключ 令牌 密钥 密鑰 秘钥 トークン シークレット apiキー 토큰 시크릿 api·키
"""
KEY_OWNERS: Final = (
    *("api", "auth", "service", "account", "access", "secret", "db", "database", "priv", "private", "client"),
    *("encryption", "signing", "master", "license", "shared", "app", "application", "subscription", "admin"),
    *("wifi", "wi-fi", "wlan", "wpa", "wpa2", "wpa3", "network", "security", "recovery"),
    *("aes", "hmac", "jwt", "unseal"),
)
"""``key`` alone is the name of anything; after one of these it names a credential."""
PAIR_WORDS: Final = """
    creds cred credentials credential login·data login·details login logins log-in signin sign-in account
    basic·auth basic-auth basicauth htaccess htpasswd
    zugangsdaten anmeldedaten logindaten
    identifiants identifiant credenciales credenciais credenziali inloggegevens dane·logowania giriş·bilgileri
    user/pass user/password user/pw username/password id/pw id/pass login/password login/pass benutzer/passwort
    benutzername/passwort zugang user·and·password username·and·password usuario·y·contraseña usuário·e·senha
    utente·e·password wifi wi-fi wlan ログイン 登录 로그인
    usuario/contraseña usuário/senha utente/password utilisateur/mot·de·passe логин/пароль логин·и·пароль
    учетные·данные 账号密码 账号/密码 帳號密碼 帳號/密碼 用户名/密码 id/パスワード 아이디/비밀번호 계정
    login·with login·as in·with in·as anmelden·mit anmeldung·mit einloggen·mit login·mit connecter·avec connexion·avec
    sesión·con entrar·con
"""
"""Words before a user and a password: ``creds: admin / …``, ``log in with admin / …``."""
ACCOUNTS: Final = """
    admin administrator administrador administrateur superadmin sysadmin root guest gast pi
"""
"""Users that need no word before them: ``admin/…``."""
WORDS_FOR_PHRASES: Final = """
    passphrase seed·phrase recovery·phrase backup·phrase mnemonic phrase·de·passe phrase·secrète phrase·de·récupération
    frase·de·contraseña frase·secreta frase·de·recuperación frase·segreta wiederherstellungsphrase
"""
HEADINGS_OF_PASSWORDS: Final = """
    passwords passphrases passwds pwds pws passcodes credentials creds logins mdp
    passwörter passwoerter kennwörter kennwoerter zugangsdaten anmeldedaten logindaten zugänge
    mots·de·passe identifiants contraseñas claves credenciales contrasenyes senhas credenciais credenziali wachtwoorden
    inloggegevens lösenord пароли 密码 パスワード
"""
HEADINGS_OF_KEYS: Final = """
    tokens secrets api·keys api-keys apikeys access·keys secret·keys license·keys api·tokens access·tokens
    api-schlüssel zugriffstoken zugangstoken geheimnisse clés·api clés·d'api jetons claves·api
    claves·de·api chaves·api chaves·de·api chiavi·api
"""
"""Words over a list of several secrets: ``Passwords:``, and below it ``- staging: …``."""
RECOVERY_WORDS: Final = """
    recovery·codes recovery·code backup·codes backup·code back-up·codes scratch·codes emergency·codes emergency·code
    2fa·codes mfa·codes wiederherstellungscodes wiederherstellungscode notfallcodes notfallcode ersatzcodes
    codes·de·récupération code·de·récupération codes·de·secours code·de·secours códigos·de·recuperación
    código·de·recuperación códigos·de·respaldo código·de·respaldo códigos·de·emergencia códigos·de·recuperação
    códigos·de·backup codici·di·recupero codice·di·recupero codici·di·backup herstelcodes herstelcode
    rescue·codes one-time·codes notfall-codes sicherungscodes codes·de·sauvegarde
    recovery·key wiederherstellungsschlüssel clé·de·récupération clave·de·recuperación
"""


@cache
def _spellings(word: str) -> tuple[frozenset[str], str]:
    """Return the folded word with composed and separate accents, and without any."""
    folded = word.replace("\u00b7", " ").lower()
    if folded.isascii():
        return frozenset((folded,)), folded
    folded = plain_letters(word.replace("\u00b7", " ")).text.lower()
    apart = unicodedata.normalize("NFD", folded)
    return frozenset((folded, apart)), "".join(char for char in apart if not unicodedata.combining(char))


def words_of(words: str, *, ascii_only: bool, bare: bool = True) -> tuple[str, ...]:
    """Return the folded ``words``, longest first: with composed, separate and (``bare``) without accents.

    ``ascii_only`` leaves out what ASCII text cannot contain.
    """
    spellings: set[str] = set()
    for word in {*words.replace("\u0142", "l").split(), *words.split()}:
        accented, plain = _spellings(word)
        spellings |= {*accented, plain} if bare else accented
    found = (word for word in spellings if word.isascii() or not ascii_only)
    return tuple(sorted(found, key=lambda word: (-len(word), word)))


def secret_names(*, ascii_only: bool) -> tuple[str, ...]:
    """Return the names of passwords and other credentials, longest first."""
    return words_of(" ".join((CREDENTIAL_WORDS, *(each.names for each in LANGUAGES.values()))), ascii_only=ascii_only)


def _marks(names: tuple[str, ...], separator: str = " ") -> tuple[str, ...]:
    """Return the least words of which every ASCII text with one of ``names`` contains at least one."""
    parts = {max(name.split(separator), key=len) for name in names}
    return tuple(sorted(part for part in parts if not any(other in part for other in parts - {part})))


ASCII_MARKS: Final = _marks(
    (
        *secret_names(ascii_only=True),
        *("key", "_pat", "_sk", "auth", "pin", "wifi:", "mnemonic", "b64", "base64", "blob", "basic", "pat"),
    )
)
PASSWORD_MARKS: Final = _marks(
    tuple(
        name
        for name in secret_names(ascii_only=True)
        if not name.startswith(words_of(CREDENTIAL_WORDS, ascii_only=True))
    )
)
HEADING_MARKS: Final = _marks(words_of(f"{HEADINGS_OF_PASSWORDS} {HEADINGS_OF_KEYS}", ascii_only=True))
PAIR_MARKS: Final = _marks(words_of(PAIR_WORDS, ascii_only=True), "/")

_CREDENTIALS: Final = (*words_of(CREDENTIAL_WORDS, ascii_only=False), "key")


def is_password_name(name: str) -> bool:
    """Return whether ``name``, a folded one of ``secret_names``, is that of a password."""
    return not name.startswith(_CREDENTIALS)


def any_of(words: str, *, ascii_only: bool = False, bare: bool = False) -> str:
    """Return a pattern for any of the ``words`` in folded text; it matches nothing without any. See ``words_of``."""
    return "|".join(map(re.escape, words_of(words, ascii_only=ascii_only, bare=bare))).replace(r"\ ", r"\s") or "(?!)"


ADVERBS: Final = any_of(_ADVERBS, bare=True)


class Said(NamedTuple):
    """Patterns for what stands between a name and its value. See ``Language``.

    ``owns`` behind a name notes whether it is one of a language with own verbs, which ``verbs`` and ``free`` look at.
    """

    verbs: str
    free: str
    glued: str
    joiners: str
    owns: str


def _said(*, ascii_only: bool) -> Said:
    names = {name: words_of(each.names, ascii_only=ascii_only) for name, each in LANGUAGES.items() if each.own}
    own = [(name, LANGUAGES[name]) for name, words in names.items() if words]
    behind = {name: "|".join(f"(?<={re.escape(word)})" for word in names[name]) for name, _ in own}
    owns = "|".join(f"(?:{names})(?P<{name}>)" for name, names in behind.items())
    own_verbs = "|".join(f"(?({name})(?:{any_of(each.own, ascii_only=ascii_only)})|(?!))" for name, each in own)
    verbs, free, glued, joiners = (
        any_of(" ".join(words), ascii_only=ascii_only)
        for words in zip(
            *((f"{each.verbs} {each.free}", each.free, each.glued, each.joiners) for each in LANGUAGES.values()),
            strict=True,
        )
    )
    return Said(f"{verbs}|{own_verbs}", f"{free}|{own_verbs}", glued, joiners, owns)


SAID: Final = {only: _said(ascii_only=only) for only in (True, False)}


def _name_words(*, ascii_only: bool) -> str:
    words = "|".join(map(re.escape, secret_names(ascii_only=ascii_only))).replace(r"\ ", r"[\s_-]")
    owned = "|".join(f"(?<={owner}key)|(?<={owner}[._ -]key)" for owner in KEY_OWNERS)
    return f"{words}|key(?:{owned})(?>(?:-data)?)"


NAME_WORDS: Final = {only: _name_words(ascii_only=only) for only in (True, False)}
NAMES_OF_SEVERAL: Final = {
    only: "|".join(map(re.escape, words_of(HEADINGS_OF_PASSWORDS, ascii_only=only))) for only in (True, False)
}
_ANY_NAME: Final = {only: compile_later(f"{words}|{NAMES_OF_SEVERAL[only]}") for only, words in NAME_WORDS.items()}
_LONGEST_NAME: Final = 64


def name_starts(folded: str) -> list[int]:
    """Return where a name of ``NAME_WORDS`` or ``NAMES_OF_SEVERAL`` begins, also within another one."""
    pattern = _ANY_NAME[folded.isascii()]
    starts = []
    for name in windowed_matches(pattern, folded, _LONGEST_NAME):
        starts.append(name.start())
        within = pattern.search(folded, name.start() + 1, name.end() + _LONGEST_NAME)
        while within and within.start() < name.end():
            starts.append(within.start())
            within = pattern.search(folded, within.start() + 1, name.end() + _LONGEST_NAME)
    return starts


def matches_at(pattern: re.Pattern[str], folded: str, starts: Iterable[int]) -> Iterator[re.Match[str]]:
    """Yield the matches of ``pattern``, which begins with a name, like ``finditer``."""
    done = 0
    for start in starts:
        if start >= done and (found := pattern.match(folded, start)):
            done = found.end()
            yield found
