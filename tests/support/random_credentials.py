# ruff: noqa: RUF001  the letters of other languages are meant
"""Credentials that a program drew at random, with ``%s`` for the value, and texts of the same look without any."""

from __future__ import annotations

LETTERS = ("wbxmfwoxnffhbdeq", "bdwmhftqbxlvqssy", "otli efva kqot ckrt", "mrfu pkfc piqz rqlc")
"""As Microsoft and Google show app passwords; with and without blanks."""
BESIDE_LETTERS = [
    *(
        "SMTP_PASSWORD=%s",
        "EMAIL_HOST_PASSWORD=%s",
        "EMAIL_HOST_PASSWORD = '%s'",
        'MAIL_PASS="%s"',
        "GMAIL_APP_PASSWORD=%s",
    ),
    *("pass: '%s'", "auth: { user: 'anna@gmail.com', pass: '%s' }", "server.login('anna@gmail.com', '%s')"),
    *('imap.login("anna@yahoo.com", "%s")', "my app password is %s", "app password: %s", 'app password "%s"'),
    *("smtp.gmail.com user anna@gmail.com app password %s", "here is the app password: %s", "**App password:** `%s`"),
    *("Use this app password for SMTP: %s", "the gmail app password is %s for the mailer", "- MAIL_PASSWORD=%s"),
    *("SMTP_USER=anna@gmail.com\nSMTP_PASSWORD=%s\nSMTP_PORT=587\n", "The app password, %s, is for the mailer"),
    *("App-Passwort: %s", "das App-Passwort ist %s", "mot de passe d'application : %s", "le mot de passe est %s"),
    *("la contraseña de aplicación es %s", "senha de app: %s", "password dell'app: %s", "hasło aplikacji: %s"),
    *(
        "пароль приложения: %s",
        "应用密码：%s",
        "アプリパスワード：%s",
        "wachtwoord voor de app: %s",
        "uygulama şifresi: %s",
    ),
    *("%s is the app password", "use %s as the app password", "spring.mail.password=%s", '"smtpPassword": "%s"'),
    *(
        "smtpPassword: %s",
        "> app password: %s",
        "App password\n%s\n",
        "| app password | %s |",
        "<password>%s</password>",
    ),
    *("<li>Password: %s</li>", "helm install x --set auth.password='%s'"),
]
GROUPED = ("xWlk 8pQz T3vR mN5c Yd2H bQ7f", "SDID uUMC LFom ErCd EKnj CkEh", "BxVl vDNg Qcie 0xe9 qG1q hGrC")
"""As WordPress shows application passwords."""
BESIDE_GROUPED = [
    *(
        "wp application password: %s",
        "application password %s",
        "WP_APP_PASSWORD=%s",
        'WP_APP_PASSWORD="%s"',
        "password: %s",
    ),
    *("WordPress user anna, application password %s", "curl --user 'anna:%s' https://blog.example.org # app password"),
    *("the application password is %s", "my WordPress password is %s for the API", "**Application password:** `%s`"),
    *(
        "- Application Password: %s",
        "Application password\n%s\n",
        "| Application password | %s |",
        "'wp_password' => '%s',",
    ),
    *("Anwendungspasswort: %s", "das Passwort der Anwendung lautet %s", "mot de passe d'application : %s"),
    *("la contraseña de aplicación es %s", "senha de aplicativo: %s", "wachtwoord: %s", "пароль приложения: %s"),
    *("%s is the application password", "use %s as the application password", '{"username":"anna","password":"%s"}'),
    *("client.login('anna', '%s')", "> the password is: %s", "// application password: %s", "wpPassword: %s"),
]
ACCESS_TOKENS = (
    "tzcezp55culjmyjyczis26lg7qqxwamd5tgnam5hqtsoal2rxwuk",
    "JRbiVnfdnbq14TCwwJXT6egTATB8ldpKjGK2AxSQm5Ow",
    "NjQ3MTIzNDU2Nzg5Om1v7j4IAsx9CGyuFyrb1fkTTF+q",
)
BESIDE_ACCESS_TOKENS = [
    *("PAT: %s", "pat: %s", "PAT=%s", "PAT = %s", "my PAT is %s", "my pat is now %s", "use the PAT %s", "azure pat %s"),
    *("Azure DevOps PAT: %s", "jira PAT: %s", "here is a PAT for bitbucket: %s", "the PAT for Azure DevOps is %s"),
    *(
        "**PAT:** `%s`",
        "- PAT: %s",
        "export PAT=%s",
        'PAT="%s"',
        "{'pat': '%s'}",
        '"pat": "%s"',
        "--pat %s",
        "PAT → %s",
    ),
    *("The PAT (%s) expires in May", "PAT `%s`", "ma PAT est %s", "mein PAT ist %s", "el PAT es %s", "new PAT: %s."),
    *("the pat was leaked: %s", "confluence pat: %s", "on the server the app runs with PAT: %s", "PATs: %s"),
]
SESSIONS = ("3ofw5jkaruvtnd3lmjakjo9hk8hzhhnn", "IbfXpoMKgpnBKY07HSQ0azt9uZ6Rw4YA", "k7Qw9ZrT2mLp4XvB8nHsT3vRmN5c")
BESIDE_SESSIONS = [
    *("sessionid=%s", "sessionid=%s; csrf=1", "SESSION=%s", "session=%s", "csrftoken=%s", "the cookie is sessionid=%s"),
    *("XSRF-TOKEN=%s", "sid=%s", "I copied sessionid=%s from the browser", "sessionid='%s'", 'sessionid="%s"'),
    *("`sessionid=%s`", "curl -b sessionid=%s https://x", "https://x.org/a?session=%s", "https://x.org/a?sid=%s&b=1"),
    *("document.cookie = 'session=%s; path=/'", "req.headers.Cookie = 'sessionid=%s'", "(sessionid=%s)"),
    *("csrftoken=%s; sessionid=x", "[session=%s]", "- sessionid=%s", "> SESSION=%s", "a; session=%s; b"),
    *("csrftoken: %s", "const csrfToken = '%s'", "xsrf-token: %s"),
]
TOLD = ("Zk9vQ2mTx4Lp", "xK9#mQ2$vL7p", "Spring2024!")
TOLD_LATER = [
    *("the password was rotated. New one: %s", "the password was rotated. The new one is %s", "password rotated: %s"),
    *("password rotated, new value: %s", "the password changed, it's now %s", "the password changed, now it is %s"),
    *(
        "password was reset, it is %s now",
        "Old password: see mail\nNew: %s",
        "The DB password leaked: %s",
        "password reset → %s",
    ),
    *("the password of the admin was changed on Monday: %s", "I lost the password. The correct one is %s"),
    *(
        "that password is wrong, the right one is %s",
        "The password expired. The current one is %s",
        "wifi password changed (%s)",
    ),
    *("The password was changed yesterday by Bob in the console. New: `%s`", "The sudo password was reset. It's %s"),
    *(
        "Das Passwort wurde geändert: %s",
        "Das Passwort wurde geändert. Das neue ist %s",
        "Das Passwort ist abgelaufen. Neu: %s",
    ),
    *(
        "Le mot de passe a changé. Le nouveau est %s",
        "le mot de passe a été réinitialisé : %s",
        "La contraseña ha sido cambiada: %s",
    ),
    *(
        "La contraseña caducó. La nueva es %s",
        "La password è cambiata, la nuova è %s",
        "het wachtwoord is anders, nieuwe: %s",
    ),
]
TOLD_KEYS = ("66iBb17pGH3DZmCZirn65i0pij9txZUlKy2GF6bW", "8f14e45fceea167a5a36dedd4bea2543")
TOLD_LATER_OF_KEYS = [
    *("key was leaked: %s", "the token was leaked in the log: %s", "The API key was rotated. The new one is %s"),
    *(
        "our key has been revoked: %s",
        "key expired. New: %s",
        "The secret was published on GitHub: %s",
        "token rejected: %s",
    ),
    *("I committed a key by accident, the key was pushed: %s", "The signing key was exposed (%s)", "keys rotated: %s"),
    *(
        "the key was replaced → %s",
        "the license key changed, it is now %s",
        "the maps key was blocked. The new value is %s",
    ),
    *(
        "token changed. Old: x\nNew: %s",
        "Der Schlüssel (key) wurde erneuert: %s",
        "der Token wurde zurückgesetzt. Neu: %s",
    ),
    *(
        "le token a expiré. Le nouveau est %s",
        "el token fue filtrado: %s",
        "The key is disabled: %s",
        "key is invalid: %s",
    ),
]
LOGINS = [
    ("Log in as admin@shop.test with password %s and check the page", "admin1234"),
    ("log in as admin with the password %s", "admin123"),
    ("Email demo@shop.test Password %s", "demo1234"),
    ("demo@shop.test, password %s", "demo1234"),
    ("demo@shop.test password %s", "hunter22"),
    ("Sign in as anna using password %s", "hunter22"),
    ("signed in as anna with password %s", "hunter22"),
    ("log in to staging with anna and password %s", "hunter22"),
    ("melde dich als anna@shop.test mit dem Passwort %s", "hunter22"),
    ("Anmeldung als anna mit Passwort %s", "hunter22"),
    ("the account is anna@shop.test / password %s", "hunter22"),
    ("login admin@shop.test / %s", "admin1234"),
    ("login: admin@shop.test / %s", "admin1234"),
    ("sign-in demo@shop.test / %s", "demo1234"),
    ("I log in with admin and %s", "Admin123!"),
    ("log in with anna@example.com and %s", "Zk9vQ2mTx4Lp"),
    ("sign in as demo@shop.test with %s", "Demo1234!"),
    ("sign in with demo@shop.test and %s, then open the cart", "Demo1234!"),
    ("logged in as root with %s", "Fr1tzB0x!77"),
    ("I logged into the NAS with admin and %s", "Admin123!"),
    ("melde dich mit anna und %s an", "Sommer2024!"),
    ("connexion avec anna et %s", "Soleil2024!"),
    ("inicia sesión con anna y %s", "Verano2024!"),
    ("User: anna@shop.test\nPassword %s\n", "demo1234"),
]
KEY_FILES = [
    *("master.key is %s", "config/master.key: %s", "master.key = %s", "the master.key is %s", "`master.key`: `%s`"),
    *("master.key=%s", "master.key -> %s", "app.api.key=%s", "api.key: %s", "secret.key = '%s'", 'encryption.key="%s"'),
    *(
        "jwt.signing.key=%s",
        "license.key: %s",
        "- client.key: %s",
        "auth.key=%s",
        "the private.key is %s",
        "access.key=%s",
    ),
    *("**master.key:** %s", "RAILS master.key: %s", "security.key is now %s", "subscription.key=%s", "aes.key=%s"),
    *("shared.key: %s", "| master.key | %s |", "hmac.key := %s"),
]
KEY_VALUES = ("8f14e45fceea167a5a36dedd4bea2543", "66iBb17pGH3DZmCZirn65i0pij9txZUl")
NO_LETTERS = [
    *("password: correcthorsebatterystaple", "DB_PASSWORD=donaudampfschifffahrt", "Passwort: Rechtsschutzversicherung"),
    *(
        "SMTP_PASSWORD=kubernetescluster",
        "password=springframeworkboot",
        "password: internationalization",
        "token: accesstokenresponse",
    ),
    *(
        "password = postgresqlpassword",
        "password: HttpClientFactory",
        "secret=applicationconfiguration",
        "token = tokenizerfactory",
    ),
    *(
        "Passwort: Geburtstagskuchenrezepte",
        "mot de passe: anticonstitutionnellement",
        "contraseña: electroencefalografista",
    ),
    *(
        "password: getpassworddigestbytes",
        "password=strncpystrncatmemcpy",
        "password: rabbitmqmgmtpwd",
        "secret: xmlrpcphpjsonrpc",
    ),
    *(
        "password=qwertyuiopasdfgh",
        "password: abcdefghijklmnop",
        "app password: abcd efgh ijkl mnop",
        "app password: xxxx xxxx xxxx xxxx",
    ),
    *(
        "password must have more than four",
        "the password form does work when auth is off",
        "password test data from user",
    ),
    *("the password page must show four more hint text", "the pass rate went down over this last week with each case"),
    *(
        "Das Passwort wird nach dem Test auch hier noch mehr",
        "mot de passe pour vous avec tout cela dans",
        "password: http smtp imap ldap",
    ),
    *("passwords are sent over sftp rtmp mqtt amqp too", "the password hash uses sha1 then hmac with salt from file"),
    *(
        "password: pgbouncer-pgpool-haproxy",
        "the password file is on nfs4 ext4 btrf disk",
        "password host: mysqlpgbouncercluster",
    ),
    *(
        "the password card says 4111 1111 1111 1111",
        "the password was set on 2024 0102 1030 0000",
        "the password is in xxd: 7061 7373 776f 7264 3a20",
    ),
    *(
        "the password key ID is 9D49 88B1 12F0 3A4C 5E6F 7788",
        "passwords: ipv4 ipv6 sha1 utf8",
        "password auth over ipv6 http port 8080 only",
    ),
    *(
        "the model knew no such word: otli efva kqot ckrt",
        "wbxmfwoxnffhbdeq is the build",
        "AbCd 12Ef GhIj 3kLm 5nOp Qr6s",
    ),
]
NO_ACCESS_TOKENS = [
    *(
        "pat = re.compile(r'[A-Z]{2}[0-9]{6,20}[a-z]+')",
        'pat = "%Y-%m-%d-%H-%M-%S-%f-%z"',
        "pat: ^[a-z0-9]{20,40}$",
        "PAT: not set",
    ),
    *(
        "NAT/PAT: 192.168.100.200:8080",
        "Pat: I will review PR1234 tomorrow",
        "Pat is on holiday until 2024-05-01",
        "PAT is enabled",
    ),
    *(
        "PAT (port address translation) of 2024",
        "my PAT expires in 30 days",
        "use the PAT from the vault",
        "PAT=$AZURE_DEVOPS_TOKEN",
    ),
    *(
        "PAT=<your-personal-access-token>",
        "PAT: ${{ secrets.PAT }}",
        "pat: feature-branch-of-the-login-form-2024",
        "pat=xxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    *(
        "--pat your-token-goes-here-please",
        "pat is 3f2b8c1e-9a4d-4f6b-8e2a-1c5d7f9b0a3e",
        "the pat: src/components/login2/Form.tsx",
    ),
    *(
        "compat: libfoo1v5-dbg-2024-amd64-build",
        "spat: kV8nQ3zR7tLm2XwPq9Zz",
        "a pat on the back for the_long_function_name_v2",
    ),
    *(
        "PAT: create one at dev.azure.com/org/_usersSettings/tokens",
        "pats 2b34e1a9f8c7d6b5a4938271605f4e3d2c1b0a99 d9e8",
    ),
]
NO_SESSIONS = [
    *(
        "session=3f2b8c1e-9a4d-4f6b-8e2a-1c5d7f9b0a3e",
        "sessionid=12345678901234567890",
        "SESSION=ubuntu-wayland-2204-lts",
    ),
    *(
        "session=Session()",
        "session=sessionmaker(bind=engine2)()",
        "sid=orcl12c_production_db",
        "session=prod-cluster-eu-1-node-7",
    ),
    *(
        "session=20240612T101010Z-worker-1",
        "SESSION=gnome-classic-xorg-2024",
        "with Session(engine) as session=None",
        "sid=S-1-5-21-3623811015",
    ),
    *(
        "sessionid=${SESSION_ID}",
        "sessionid=<your-session-id-here-1>",
        "my_session=kV8nQ3zR7tLm2XwPq9",
        "db.session=kV8nQ3zR7tLm2XwPq9",
    ),
    *(
        "session=true&csrf=false",
        "session=request.session_2",
        "tmux new -s session=work2",
        "csrftoken=getCookie('csrftoken')",
        "sid=2024",
    ),
    *(
        "session=example-session-id-123456",
        "csrftoken: string | null",
        "sessionid={{session_id_v2}}",
        "?session=evening-of-2024-05-06",
    ),
]
NOT_TOLD = [
    *(
        "the password was rotated. New one: see 1Password",
        "the password policy changed. New: min 12 chars",
        "password changed: 2024-05-06",
    ),
    *(
        "passwords were reset in Q3. New ones are in Vault2",
        "password hashing changed. New: argon2id",
        "Old: sha256crypt New: bcrypt12 for passwords",
    ),
    *(
        "The password reset flow changed. New: /reset/v2",
        "the key was renamed. New: user_id_v2",
        "The key changed. Old: userId New: user_id2",
    ),
    *(
        "the token format was changed. New: v2.local.payload",
        "cache key changed: user:42:profile",
        "The primary key was replaced: account_id2",
    ),
    *(
        "key expired: 2024-05-06T10:11:12Z",
        "token invalid: unexpected end of input at 12:34",
        "token expired: JWT_EXPIRED_401",
        "key not found: item42",
    ),
    *(
        "the key was pushed: commit 2b34e1a9f8c7d6b5a4938271605f4e3d2c1b0a99",
        "token rejected: 401",
        "password wrong: attempt3",
    ),
    *(
        "the password was changed. It is 12 characters long now",
        "The new one is faster2 than the old password form",
        "password logged: false",
    ),
    *(
        "the pass rate changed. New: 98.5%",
        "We lost the key. The new one is in safe2",
        "the password page is wrong: login.tsx:42",
    ),
    *(
        "Das Passwort wurde geändert: siehe Ticket OPS-1234",
        "le mot de passe a changé : voir page 12",
        "the new one is Zk9vQ2mTx4Lp",
    ),
]
NO_LOGINS = [
    *(
        "log in with Google and Microsoft365",
        "sign in with GitHub and Office365",
        "log in with SAML and OAuth2",
        "log in as root with sudo2",
    ),
    *(
        "log in as anna with Firefox128",
        "sign in as admin with password manager",
        "log in with username and password",
        "email the password policy",
    ),
    *(
        "Email the password reset link to anna@shop.test",
        "anna@shop.test password reset",
        "anna@shop.test, password expired",
        "demo@shop.test password: reset",
    ),
    *(
        "log in as admin with password authentication",
        "log in with password and email2",
        "sign in with 2 users and 3 roles",
        "signed in as anna with role admin2",
    ),
    *(
        "log in as anna with the password from 1Password",
        "login anna@shop.test / bob@shop.test",
        "log in with admin and check v2.1.0",
    ),
    *(
        "connect with anna and postgres16",
        "log in as user1 with user2",
        "log in with passkeys and WebAuthn2 keys",
        "login as ubuntu22 with key2",
    ),
]
NO_KEY_FILES = [
    *(
        "master.key is missing",
        "master.key is in /etc/app2/keys",
        "config/master.key: 32 bytes",
        "private.key is 2048 bits long",
        "api.key = env2",
    ),
    *(
        "server.key: /etc/ssl/server2.key",
        "private.key is mode 0600",
        "ssl: {key: client.key, cert: client2.crt}",
        "openssl genrsa -out private.key 2048",
    ),
    *(
        "license.key: read from license2.txt",
        "chmod 600 master.key && git add .gitignore2",
        "app.key=${APP_KEY}",
        "api.key: <your-key>",
        "api.key=changeme1",
    ),
    *(
        "secret.key -> ../shared/secret2.key",
        "auth.key is a file of 2 lines",
        "client.key, client.crt and ca2.crt",
        "event.key === 'Enter2'",
    ),
    *(
        "event.key: 8f14e45fceea167a5a36dedd4bea2543",
        "row.key = 8f14e45fceea167a",
        "cache.key=user2:profile:v3",
        "obj.key is item42",
    ),
]
FOUND = {
    "letters": (LETTERS, BESIDE_LETTERS),
    "groups": (GROUPED, BESIDE_GROUPED),
    "access tokens": (ACCESS_TOKENS, BESIDE_ACCESS_TOKENS),
    "sessions": (SESSIONS, BESIDE_SESSIONS),
    "told later": (TOLD, TOLD_LATER),
    "keys told later": (TOLD_KEYS, TOLD_LATER_OF_KEYS),
    "files of keys": (KEY_VALUES, KEY_FILES),
}
KEPT = {
    "letters": NO_LETTERS,
    "access tokens": NO_ACCESS_TOKENS,
    "sessions": NO_SESSIONS,
    "told later": NOT_TOLD,
    "logins": NO_LOGINS,
    "files of keys": NO_KEY_FILES,
}
