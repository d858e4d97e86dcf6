# ruff: noqa: RUF001  the letters of other languages are meant
"""Words for passwords and other credentials in the languages that people write, as patterns for folded text.

Look-alike letters are ASCII in the text that is searched (``letters.py``), so the words are translated likewise.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from signet_actors.domain.redaction.letters import plain_letters

WORDS_FOR_PASSWORDS: Final = """
    password passwort passwd passord passcode passphrase passe pass pwd psw psk pw mdp mot·de·passe kennwort zugangscode
    seed·phrase recovery·phrase mot·secret code·secret wifi·code wlan·code code·wifi clé·wifi clé·wi-fi
    wlan-schlüssel wlan·schlüssel netzwerkschlüssel clé·wpa
    contraseña contrasenya clave·secreta clave senha palavra-passe palavra·passe
    parola·chiave parola·d'ordine parola·d'accesso parola wachtwoord toegangscode hasło hasła hasłem
    heslo jelszó jelszava parolası parolam parolă şifresi şifrem şifreniz şifre
    lösenordet lösenord adgangskoden adgangskode kodeordet kodeord passordet salasana·on salasana mật·khẩu kata·sandi
    identified·by
    пароль пароля пароли κωδικός·πρόσβασης κωδικός 密码 密碼 口令 パスワード ﾊﾟｽﾜｰﾄﾞ パスフレーズ 合言葉
    비밀번호 비번 암호 패스워드 كلمة·المرور كلمة·السر رمز·عبور סיסמה סיסמא पासवर्ड รหัสผ่าน
"""
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
)
"""``key`` alone is the name of anything; after one of these it names a credential."""
PAIR_WORDS: Final = """
    creds cred credentials credential login·data login·details login logins log-in signin sign-in account
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
RECOVERY_WORDS: Final = """
    recovery·codes recovery·code backup·codes backup·code back-up·codes scratch·codes emergency·codes emergency·code
    2fa·codes mfa·codes wiederherstellungscodes wiederherstellungscode notfallcodes notfallcode ersatzcodes
    codes·de·récupération code·de·récupération codes·de·secours code·de·secours códigos·de·recuperación
    código·de·recuperación códigos·de·respaldo código·de·respaldo códigos·de·emergencia códigos·de·recuperação
    códigos·de·backup codici·di·recupero codice·di·recupero codici·di·backup herstelcodes herstelcode
    rescue·codes one-time·codes notfall-codes sicherungscodes codes·de·sauvegarde
    recovery·key wiederherstellungsschlüssel clé·de·récupération clave·de·recuperación
"""


def words_of(words: str, *, ascii_only: bool) -> tuple[str, ...]:
    """Return the folded ``words``, longest first: with composed, separate and without accents.

    ``ascii_only`` leaves out what ASCII text cannot contain.
    """
    spellings = set()
    for word in words.replace("\u0142", "l").split() + words.split():
        folded = plain_letters(word.replace("\u00b7", " ")).text.lower()
        apart = unicodedata.normalize("NFD", folded)
        spellings |= {folded, apart, "".join(char for char in apart if not unicodedata.combining(char))}
    found = (word for word in spellings if word.isascii() or not ascii_only)
    return tuple(sorted(found, key=lambda word: (-len(word), word)))


def secret_names(*, ascii_only: bool) -> tuple[str, ...]:
    """Return the names of passwords and other credentials, longest first."""
    return words_of(WORDS_FOR_PASSWORDS + CREDENTIAL_WORDS, ascii_only=ascii_only)


def _marks(names: tuple[str, ...], separator: str = " ") -> tuple[str, ...]:
    """Return the least words of which every ASCII text with one of ``names`` contains at least one."""
    parts = {max(name.replace("/", separator).split(separator), key=len) for name in names}
    return tuple(sorted(part for part in parts if not any(other in part for other in parts - {part})))


ASCII_MARKS: Final = _marks(
    (*secret_names(ascii_only=True), "key", "auth", "pin", "wifi:", "mnemonic", "b64", "base64")
)
PAIR_MARKS: Final = _marks(words_of(PAIR_WORDS, ascii_only=True), "/")

_CREDENTIALS: Final = (*words_of(CREDENTIAL_WORDS, ascii_only=False), "key")


def is_password_name(name: str) -> bool:
    """Return whether ``name``, a folded one of ``secret_names``, is that of a password."""
    return not name.startswith(_CREDENTIALS)
