"""Secrets in statements of databases, in lists below a heading and several in one sentence, and texts without any."""

from __future__ import annotations

WORD = "correcthorse"
MIXED = "Kx9!pLm2q"

STATEMENTS = [
    ("ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '%s';", MIXED),
    ("ALTER USER 'root'@'localhost' IDENTIFIED WITH caching_sha2_password BY '%s'; FLUSH PRIVILEGES;", WORD),
    ("CREATE USER IF NOT EXISTS 'app'@'10.0.%' IDENTIFIED WITH 'sha256_password' BY '%s' REQUIRE SSL", WORD),
    ("GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED BY PASSWORD '%s';", "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4"),
    ("CREATE USER reader IDENTIFIED VIA mysql_native_password USING PASSWORD('%s');", WORD),
    ("alter user root@localhost identified with mysql_native_password by '%s';", WORD),
    ("create user 'anna'@'%' identified by '%s'", WORD),
    ("mysql -e \"ALTER USER root IDENTIFIED BY '%s'\"", WORD),
    ("ALTER USER root IDENTIFIED BY '****' REPLACE '%s';", MIXED),
    ("SET PASSWORD FOR 'anna'@'%' = '%s';", WORD),
    ("SET PASSWORD = PASSWORD('%s')", WORD),
    ("set password for anna = password('%s');", WORD),
    ("CREATE USER app PASSWORD '%s';", "s3cure-Pa55"),
    ("CREATE USER app PASSWORD '%s'", WORD),
    ("CREATE ROLE app LOGIN PASSWORD '%s';", WORD),
    ("ALTER USER postgres PASSWORD '%s';", "Yv9pLm2q"),
    ("alter user postgres password '%s';", WORD),
    ("ALTER ROLE app ENCRYPTED PASSWORD '%s' VALID UNTIL '2027-01-01'", WORD),
    ("CREATE ROLE app WITH LOGIN SUPERUSER CONNECTION LIMIT 5 PASSWORD '%s';", WORD),
    ("psql -c \"ALTER USER app WITH PASSWORD '%s'\"", WORD),
    ("psql -c 'ALTER USER app PASSWORD '\\''%s'\\'''", WORD),
    ('psql.run("ALTER USER \\"app\\" PASSWORD \'%s\'")', WORD),
    ("CREATE USER app\n    PASSWORD '%s';", "it''s-Pa55"),
    ("ALTER LOGIN sa WITH PASSWORD = N'%s';", "Xu9pLm2q!"),
    ("CREATE LOGIN [anna] WITH PASSWORD='%s' MUST_CHANGE, CHECK_EXPIRATION = ON", WORD),
    ("CREATE LOGIN anna WITH DEFAULT_DATABASE=[db1], PASSWORD = N'%s'", WORD),
    ("CREATE USER anna FOR LOGIN anna WITH PASSWORD = '%s'", WORD),
    ('ALTER USER sys IDENTIFIED BY "%s";', WORD),
    ('CREATE USER hr IDENTIFIED BY "%s" DEFAULT TABLESPACE users', "correct horse"),
    ("CREATE USER x IDENTIFIED WITH sha256_password BY '%s'", WORD),
    ('db.createUser({user: "x", pwd: "%s", roles: ["readWrite"]})', WORD),
    ('db.createUser({\n  user: "x",\n  pwd: "%s",\n  roles: []\n})', MIXED),
    ("db.updateUser('x', {pwd: '%s'})", WORD),
    ('db.runCommand({"createUser": "x", "pwd": "%s", "roles": []})', WORD),
    ('db.changeUserPassword("x", "%s")', WORD),
    ('db.auth("admin", "%s")', WORD),
]
"""A statement that sets the password of an account: also a plain word is one."""

_TWO = ("Kx9!pLm2", "Zw8?qRt5")
_KEYS = ("Kx9pLm2qRt5vBn8wQz3", "8f14e45fceea167a5a36dedd4bea2543")

LISTS = [
    *(
        (form, _TWO)
        for form in (
            "Passwords:\n- staging: %s\n- prod: %s",
            "Our passwords:\n- staging db: %s\n- prod db: %s\n",
            "The passwords we use here:\n\n- staging: %s\n- prod: %s",
            "## Passwords\n\n- staging: `%s`\n- **prod**: `%s`",
            "**Passwords:**\n* staging - %s\n* prod - %s",
            "passwords for the databases:\n1. staging = %s\n2. prod = %s",
            "Passwords\n1) staging -> %s\n2) prod -> %s",
            "Passwords:\n\u2022 staging \u2192 %s\n\u2022 prod \u2192 %s",
            "Passwords:\n- staging: anna / %s\n- prod: bob / %s",
            "Credentials:\n- staging: anna / %s\n- prod: bob / %s",
            "Credentials:\n- staging: %s\n- prod: %s",
            "creds:\n- staging: anna %s\n- prod: bob %s",
            "Logins:\r\n- staging: %s\r\n- prod: %s\r\n",
            "Passwords:\n- %s\n- %s",
            "Passwords:\n- staging: %s (rotated in May)\n- prod: %s  # do not share",
            "Passwords:\n- staging: see 1Password\n- test: %s\n- prod: %s",
            "Passwords:\n- staging: %s\n- prod=%s",
            "passwords:\n  staging: %s\n  prod: %s\nhost: db",
            "pws:\nstaging: %s\nprod: %s",
            "- Passwords:\n  - staging: %s\n  - prod: %s",
            "Passwörter:\n- Staging: %s\n- Produktion: %s",
            "Unsere Passwörter:\n- Staging: %s\n- Produktion: %s",
            "Zugangsdaten:\n- Staging: anna / %s\n- Produktion: bert / %s",
            "Mots de passe :\n- recette : %s\n- prod : %s",
            "mdp:\n- recette : %s\n- prod : %s",
            "Identifiants :\n- recette : anna / %s\n- prod : bob / %s",
            "Contraseñas:\n- pruebas: %s\n- producción: %s",
            "contrasenas:\n- pruebas: %s\n- prod: %s",
            "Senhas:\n- testes: %s\n- prod: %s",
            "| Service | Passwords |\n|---|---|\n| staging | %s |\n| prod | %s |",
        )
    ),
    ("Passwords:\n- admin: %s\n- prod: %s", ("hunter2", "Winter2025!")),
    *(
        (form, _KEYS)
        for form in (
            "Tokens:\n- ci: %s\n- deploy: %s",
            "API keys:\n* stripe - %s\n* maps - %s",
            "API keys for the services:\n1. stripe: %s\n2. maps: %s",
            "Secrets:\n- ci: %s\n- deploy: %s",
            "access tokens:\n- ci: `%s`\n- deploy: `%s`",
            "API-Schlüssel:\n- Karten: %s\n- Zahlung: %s",
            "Clés API :\n- cartes : %s\n- paiement : %s",
            "Claves de API:\n- mapas: %s\n- pagos: %s",
            "Tokens:\n- %s\n- %s",
        )
    ),
]
"""A list below a heading of several secrets."""

SENTENCES = [
    *(
        (form, _TWO)
        for form in (
            "password for staging: %s, for prod: %s",
            "password for staging: %s and for prod: %s",
            "the passwords for staging: %s; for the prod db: %s",
            "password for staging is %s, for prod it's %s",
            "password staging: %s, prod: %s",
            "Passwords: staging: %s, prod: %s",
            "passwords - staging: %s, prod: %s",
            "The passwords are %s for staging and %s for prod.",
            "The passwords are %s (staging) and %s (prod)",
            "the passwords are %s on staging, %s on prod",
            "the passwords for staging and prod are %s and %s",
            "passwords: %s for staging, %s for prod",
            "Passwort für Staging: %s, für Produktion: %s",
            "Die Passwörter sind %s für Staging und %s für Produktion",
            "mot de passe pour recette: %s, pour prod: %s",
            "contraseña para pruebas: %s, para prod: %s",
        )
    ),
    *(
        (form, ("Kx9!pLm2",))
        for form in (
            "password staging: %s",
            "root password staging: %s",
            "password prod db: %s",
            "the password I chose is %s",
            "the password that we use on prod is %s.",
            "The password you asked for is %s",
            "das Passwort, das ich gewählt habe, ist %s",
            "le mot de passe que j'ai choisi est %s",
            "la contraseña que yo elegí es %s",
        )
    ),
    ("token for ci: %s, for deploy: %s", _KEYS),
    *(
        (form, ("wJalrXUtnFEMIK7MDENGbPxRfiCYzzKEYab12cd3",))
        for form in (
            "AWS Secret Access Key [None]: %s",
            "AWS Secret Access Key [****************ab12]: %s",
            "AWS Access Key ID [None]: \nAWS Secret Access Key [None]: %s\nDefault region name [None]:",
        )
    ),
    *(
        (form, ("correcthorse",))
        for form in (
            'new Sequelize("db", "user", "%s")',
            "new Sequelize('db', 'user', '%s', { dialect: 'postgres' })",
            'pymysql.connect("localhost", "root", "%s", "db")',
            'MySQLdb.connect("localhost", "root", "%s", "db")',
            'mysql_connect("localhost", "root", "%s")',
            'cx_Oracle.connect("hr", "%s", "db/xe")',
            'oracledb.connect("hr", "%s", dsn)',
            'oci_connect("hr", "%s", "db/xe")',
            'ftp_login($conn, "anna", "%s")',
            'ssh2_auth_password($conn, "anna", "%s")',
        )
    ),
]
"""Several secrets in one sentence, a secret behind a clause or a default, and positional arguments that log in."""

CHANGED = [
    *(
        (form, ("Blumen!22kx", "Tiger2025"))
        for form in (
            "Change the password from %s to %s",
            "Please change the password of the app user from `%s` to `%s`.",
            "the password was changed from %s to %s",
            "The root password has been rotated from %s to %s, tell Bob",
            'We switched the db password from "%s" to "%s"',
            "reset the password for anna on db1 from %s to %s",
            "update the wifi password from %s to %s today",
            "password changed from %s to %s",
            "ändere das Passwort von %s auf %s",
            "das Passwort wurde von %s auf %s geändert",
            "Passwort von %s in %s ändern",
            "changer le mot de passe de %s à %s",
            "cambia la contraseña de %s a %s",
            "cambia la password da %s a %s",
        )
    ),
    *(
        (form, ("Blumen!22kx",))
        for form in (
            "Please change the password of the app user from %s to something random",
            "change the password from changeme to %s",
            "Change the password from `%s` to a new one",
            "ändere das Passwort von %s in etwas Zufälliges",
        )
    ),
    *(
        (form, _KEYS)
        for form in (
            "rotated the api key from %s to %s",
            "Change the token from %s to %s",
            "the client secret was changed from %s to %s",
        )
    ),
]
"""The former and the new secret of a change."""

CHANGED_TO = [
    *(
        (form, (value,))
        for form in (
            *("Ich habe das Passwort auf %s geändert", "Passwort auf %s gesetzt", "das Root-Passwort auf %s gesetzt"),
            *("das Passwort zu %s geändert", "das Passwort in %s geändert", "Passwort für den Server auf %s gesetzt"),
            *("he cambiado la contraseña a %s", "cambié la contraseña del wifi a %s", "puse la contraseña en %s"),
            *("j'ai changé le mot de passe en %s", "j'ai mis le mot de passe à %s", "changed the password to %s"),
            *("set the root password to %s", "I changed the wifi password to %s.", "set the password of anna to %s"),
            *("reset the password of the db user to %s", "ho cambiato la password a %s", "the password is set to %s"),
            *("change the password for prod to %s, please", "we rotated the db password to `%s`"),
        )
        for value in ("Xk29!mmQp", "Tr0ub4dor&3", "q8W#zP2v", "Blumen!22kx", "Sommer2024!", "k7Qw9ZrT2mLp")
    ),
    *(
        (form, ("hunter22",))
        for form in ("changed the password to %s", "das Passwort zu %s geändert", "he cambiado la contraseña a %s")
    ),
]
"""Only the new secret of a change."""

SET_NOTHING = {
    "new values": (
        "changed the password to <new-pass-2>",
        "set the root password to $NEW_PASS2",
        "das Passwort von Hand auf Server2 gesetzt",
        "pw jenkins was changed in OPS-1234",
        "das Passwort auf dem Server2 geändert",
        "das Passwort auf db-host-12 geändert",
        "das Passwort in Keycloak24 geändert",
        "das Passwort auf jenkins01 gesetzt",
        "das Passwort zu Staging2 geändert",
        "Passwort auf Python3.12 umgestellt",
        "die Passwort-Prüfung auf argon2id umgestellt",
        "j'ai changé le mot de passe en 2024",
        "j'ai changé le mot de passe en production2",
        "he cambiado la contraseña a las 10h30",
        "cambié la contraseña a OAuth2Proxy",
        "changed the password to argon2id",
        "changed the password hash to SHA-256",
        "set the password policy to 12chars",
        "set the password length to 16chars",
        "changed the password check to OAuth2Proxy",
        "we changed the password on 2024-05-01",
        "set PASSWORD to ${DB_PASSWORD_2}",
    ),
    "changes": (
        "change the password from the old one to something random",
        "Change the password policy from 8chars to 12chars",
        "change the password manager from 1Password to Bitwarden",
        "change the password hash from sha256 to argon2id",
        "change the password column from varchar64 to varchar128",
        "switch the password check from bcrypt12 to argon2id",
        "the password was changed from the settings page to comply2024",
        "copy the password from KeePass2024 to Bitwarden",
        "move the password from db-host-12 to Vault2",
        "the token was moved from GITHUB_TOKEN_1 to GITHUB_TOKEN_2",
        "change the token from OAuth1 to OAuth2Proxy",
        "update the secret from v1beta1 to v2beta2",
        "rotate the password from 2024-01-01 to 2024-02-01",
        "change the password from <old-pass-1> to <new-pass-2>",
        "change the password from $OLD_PASS1 to $NEW_PASS2",
        "reset the token limit from 4096 to 8192",
        "change the token type from Bearer2 to Basic2",
        "the api key was renamed from api_key_1 to api_key_2",
        "the password length changed from 10-digit to 12-digit",
        "ändere das Passwort von Hand auf dem Server2",
        "das Passwort wurde von Anna auf dem Server geändert",
        "changer le mot de passe de la base2 en mai",
    ),
    "sentences": (
        "password rules for staging: 12chars, for prod: 16chars",
        "password for staging: see 1Password, for prod: rotate monthly",
        "The passwords are hashed with bcrypt12 for staging and argon2id for prod.",
        "The passwords are in Vault2 for staging and in KeePassXC for prod",
        "the passwords are OAuth2Proxy for staging and Angular17 for prod",
        "password policy: NIST800-63b, version: 4",
        "password hash: Kx9!pLm2",
        "password field: PrdDb01Eu",
        "password page: Angular17, login page: React18",
        "the password I chose is in 1Password",
        "the password that we use is 12 characters long",
        "The password you need is PROD_PASSWORD_2",
        "the password the form asks for is OAuth2Proxy",
        "das Passwort, das ich gewählt habe, ist in KeePass2",
        "le mot de passe que j'ai choisi est dans 1Password",
        "tokens for ci: 4096, for deploy: 8192",
        "tokens used: 1204, left: 3000",
        "token type: Bearer2, token url: v2",
        "AWS Secret Access Key [None]: ",
        "AWS Secret Access Key [None]: <your secret key>",
        "AWS Secret Access Key [None]: $AWS_SECRET_ACCESS_KEY",
        'new Sequelize("db", "user", "password")',
        "new Sequelize(config.db, config.user, config.password)",
        'new Sequelize("db", "user", process.env.DB_PASSWORD)',
        'pymysql.connect("localhost", "root", "", "db")',
        'socket.connect("localhost", "root")',
        'signal.connect("changed", self.update, "after")',
    ),
    "lists": (
        "Passwords:\n- staging: see 1Password\n- prod: rotate monthly",
        "Passwords:\n- at least 12 characters\n- no dictionary words",
        "Passwords:\n- minimum: 12chars\n- maximum: 128chars",
        "Passwords:\n- hash: argon2id\n- policy: NIST800-63b",
        "Passwords:\n- staging: vault/prod/db2\n- prod: op://prod/db2/password",
        "Passwords:\n- staging: KeePassXC2\n- prod: Bitwarden2024",
        "Passwords:\n- column: users.pw_hash2\n- table: users_v2",
        "Passwords:\n- ticket: OPS-1234\n- fixed in v2.3.1",
        "Passwords:\n- stored in src/auth/passwords2.py\n- tested on Python3.12",
        "Passwords:\n- expire after 90 days\n- are reset by OAuth2Proxy",
        "passwords are hashed:\n- with bcrypt12 in prod\n- with SHA-256 in tests",
        "We rotate all passwords.\n- staging: done on 2026-01-02\n- prod: on 2026-02-02",
        "Passwords:\n- staging: <password>\n- prod: ${PROD_PASSWORD}",
        "Passwords:\n- staging: ********\n- prod: changeme",
        "Passwords:\n\nThe form was rewritten in Angular17Rc.",
        "Logins:\n- 12 on Monday\n- 1,204 on Tuesday",
        "Tokens:\n- max: 4096\n- used: 1,024",
        "Tokens:\n- primary: --color-blue-500\n- spacing: 12px",
        "Tokens:\n- IDENT: [a-z]+\n- NUMBER: [0-9]+",
        "API keys:\n- stripe: in Vault under prod-2\n- maps: rotate in Q3",
        "API keys:\n- are listed at /v1/keys\n- have 32 characters",
        "Secrets:\n- ci: GITHUB_TOKEN_2\n- deploy: DEPLOY_KEY",
        "Tokens:\n- fixed in 8f14e45fceea167a5a36dedd4bea2543abcdef01",
        "Passwörter:\n- mindestens 12 Zeichen\n- Staging: siehe KeePass2",
        "Mots de passe :\n- 12 caractères au moins\n- prod : voir 1Password",
        "Contraseñas:\n- mínimo 12 caracteres\n- prod: ver 1Password",
    ),
    "statements": (
        *(
            form.replace("%s", value)
            for form in (
                "ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '%s';",
                "CREATE USER app PASSWORD '%s';",
                'db.createUser({user: "x", pwd: "%s", roles: []})',
            )
            for value in (
                *("...", "<password>", "${VAR}", "your_password", "password", "secret", "****", "?", ":pw", "%s"),
                *("$PASSWORD", "{password}", "#{pw}", "%(pw)s", "NEW_PASSWORD", "new-password", "your password here"),
                *("app_password", "changeme", "&pw", "PUT_PASSWORD_HERE"),
            )
        ),
        'cur.execute("ALTER USER app PASSWORD \'" + password + "\'")',
        "cur.execute(f\"CREATE USER app PASSWORD '{settings.db_password}'\")",
        "db.createUser({user: 'x', pwd: passwordPrompt(), roles: []})",
        "the create user form password 'min-8-chars' hint",
        "create user dialog password 'required'",
        "the rows are identified by 'name'",
        "users are identified with token by 'name' and id",
        "CREATE USER app PASSWORD NULL;",
        "ALTER ROLE app VALID UNTIL '2027-01-01';",
        "CREATE USER 'app'@'localhost' IDENTIFIED WITH auth_socket;",
        "ALTER USER app SET search_path = 'public';",
        "CREATE LOGIN x FROM WINDOWS WITH DEFAULT_DATABASE = 'master'",
        "ALTER TABLE users ADD COLUMN password text DEFAULT 'none'",
        "CREATE USER reader IDENTIFIED EXTERNALLY AS 'reader-role'",
        "ALTER USER app WITH NOLOGIN; COMMENT ON ROLE app IS 'no password'",
        "ALTER USER app PASSWORD EXPIRE INTERVAL 90 DAY; -- see 'policy'",
        "create a login with password rules, as in 'policy'",
    ),
}
"""Texts of the same look that hold no secret."""
