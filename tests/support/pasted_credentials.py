"""What people paste: forms of each kind with ``%s`` for the value, and texts of the same look without a secret."""

from __future__ import annotations

VALUES = ("kV8nQ3zR7tLm2XwPq9", "8f14e45fceea167a5a36dedd4bea2543", "HBloC8595PFK42xyZ7")

_LAST_PARTS = [
    *("STRIPE_KEY=%s", "SENDGRID_KEY=%s", "AZURE_KEY: %s", "export MAPBOX_KEY=%s", "ENCRYPT_KEY='%s'", 'JWT_KEY="%s"'),
    *("DEPLOY_KEY=%s", "GITHUB_PAT=%s", "GITLAB_PAT: %s", 'AZ_DEVOPS_PAT="%s"', "STRIPE_SK=%s", "MYAPP_AUTH=%s"),
    *("stripe_key = '%s'", 'openai_key: "%s"', '"weather_key": "%s"', "- MAPS_KEY=%s", "OPENAI_KEY=%s # prod"),
    *("DB_HOST=x\nSTRIPE_KEY=%s\nDEBUG=1", "docker run -e HMAC_KEY=%s app", "RAILS_MASTER_KEY=%s", "AES_KEY := %s"),
]
_TYPED = [
    *("const apiKey: string = '%s'", 'apiKey: string = "%s"', "password: str = '%s'", "API_KEY: Final = '%s'"),
    *('val dbPassword: String = "%s"', 'let password: &str = "%s";', 'const TOKEN: &\'static str = "%s";'),
    *('var secret: String = "%s"', "private readonly apiKey: string = '%s';", "token: Optional[str] = '%s'"),
    *("api_key: Final[str] = '%s'", "token: str | None = '%s'", "let token: string | undefined = '%s'"),
    *('static let apiKey: String = "%s"', "password: SecretStr = '%s'", 'lateinit var token: String = "%s"'),
    *('pub const API_KEY: &str = "%s";', "secret: bytes = '%s'", "export const authToken: string = `%s`"),
    *("API_TOKEN: typing.Final = '%s'", "db_password: t.Any = '%s'"),
]
_TRIPLE = [
    *('password = """%s"""', "password = '''%s'''", 'token: """%s"""', 'API_KEY="""%s"""', "secret='''%s'''"),
    *(
        'passphrase = """%s"""',
        'x = {"password": """%s"""}',
        'client_secret = """%s"""',
        "pwd = '''%s'''",
        "pw='''%s'''",
    ),
    *(
        "api_key = '''%s'''",
        'auth_token = """%s"""',
        'password: str = """%s"""',
        'db.password = """%s"""',
        'senha = """%s"""',
    ),
    *("passwort = '''%s'''", 'mdp = """%s"""', 'access_key = """%s"""', 'my_token="""%s"""', 'DB_PASS = """%s"""'),
]
_LISTS = [
    *(
        '"passwords": ["%s"]',
        "passwords: [%s, foo]",
        "tokens = ['%s', 'a']",
        'api_keys = ["%s"]',
        "secrets: ['x', '%s']",
    ),
    *('passwords = ("%s",)', "passwords = {'prod': '%s'}", 'tokens = {"dev": "a", "prod": "%s"}', '"apiKeys": ["%s"]'),
    *('"password" : ["%s"]', "passwords = [\n  'a',\n  '%s',\n]", 'secrets = {\n  "stripe": "%s",\n}', "pwds: ['%s']"),
    *("passwords: {anna: %s}", "credentials = ['%s']", 'access_tokens: ["%s"]', "api_keys: {prod: '%s', dev: x}"),
    *("passwords=['%s']", 'client_secrets = ["%s"]', "passphrases: ['%s']", 'auth_tokens = {"a": "%s"}'),
]
_SECTIONS = [
    *(
        "secrets:\n  stripe: %s\n",
        'secrets:\n  stripe: "%s"\n',
        "[secrets]\nopenai = '%s'",
        '[secrets]\nopenai = "%s"\n',
    ),
    *(
        "credentials:\n  github: %s",
        "[credentials]\ngithub=%s",
        "secrets:\n  a: b\n  stripe: %s\n",
        "app_secrets:\n  jwt: %s",
    ),
    *(
        "x: 1\nsecrets:\n    stripeKey: %s\ny: 2",
        "secret:\n  value1: %s",
        "[app.secrets]\nmaps = '%s'",
        "[secret]\nx=%s",
    ),
    *(
        "global:\n  secrets:\n    db: %s\n",
        "secrets:\r\n  stripe: %s\r\n",
        "[secrets]\n\nopenai='%s'".replace("\n\n", "\n"),
    ),
    *(
        "secrets:\n  - stripe: %s",
        'secrets:\n  "maps": "%s"',
        "my-secrets:\n  sentry: %s # old",
        "[secrets]\na = 1\nb = '%s'",
    ),
    *("dev_credentials:\n\tsmtp: %s", "extraSecrets_secrets:\n  k: %s"),
]
_LABELS = [
    *(
        "Username\nbob@example.com\nPassword\n%s\nWebsite\nhttps://x.com",
        "Password\n%s",
        "PASSWORD\n\n%s",
        "API key\n%s\n",
    ),
    *("Email\nbob@x.com\n\nPassword\n%s", "Login\nbob\nPasswort\n%s\n", "Secret key\n%s", "Access token\n%s\nCopy\n"),
    *(
        "Client secret\n`%s`",
        "## Password\n%s",
        "**Password**\n%s",
        "* Password\n  %s",
        "Benutzername\nanna\nKennwort\n%s",
    ),
    *(
        "User\r\nbob\r\nPassword\r\n%s\r\n",
        "Account\nbob\nPassword:\n%s",
        "mot de passe\n%s",
        "Contraseña\n%s",
        "Пароль\n%s",
    ),
    *("admin password\n%s", "Wi-Fi password\n%s", "Passphrase\n%s"),
]
_POSITIONAL = [
    *(
        'DriverManager.getConnection(url, "bob", "%s")',
        "new PDO($dsn, 'bob', '%s')",
        "new mysqli('localhost', 'bob', '%s', 'db')",
    ),
    *("new PDO('mysql:host=h;dbname=d', 'bob', '%s');", "mysqli_connect('localhost','bob','%s','db')"),
    *("New-Object PSCredential('bob', '%s')", 'PSCredential("bob", "%s")', 'server.login("bob", "%s")'),
    *("smtp.login('bob@x.com', '%s')", "ftp.login('bob', '%s')", "client.login('bob', '%s')", 'mail.login("b","%s")'),
    *("INSERT INTO users (name, password) VALUES ('bob', '%s')", "insert into u(password) values('%s');"),
    *("INSERT INTO `users` (`id`, `user_password`, `name`) VALUES (1, '%s', 'bob')", "auth=('bob', '%s')"),
    *(
        "INSERT INTO t (a, api_key)\nVALUES\n  (1, 'x'),\n  (2, '%s')",
        "INSERT INTO app.users (\"name\",\"passwd\") VALUES ('b','%s')",
    ),
    *("INSERT INTO u (name, password) VALUES ('O, x', '%s')", 'getConnection( "jdbc:mysql://h/d" , "bob" , "%s" )'),
]
_COMMANDS = [
    *("curl --proxy-user bob:%s https://x.com", "requirepass %s", "redis-server --requirepass %s", "masterauth %s"),
    *("htpasswd -b /etc/f bob %s", "htpasswd -cb f bob %s", "echo 'bob:%s' | chpasswd", "echo bob:%s | sudo chpasswd"),
    *(
        "gh auth login --with-token <<< %s",
        "echo %s | gh auth login --with-token",
        "echo '%s' | docker login --password-stdin",
    ),
    *(
        "echo %s | docker login -u bob --password-stdin r.io",
        "curl -b 'session=%s' https://x.com",
        "curl -b sid=%s x.com",
    ),
    *('add_header Authorization "Basic %s";', 'proxy_set_header Authorization "Bearer %s";', "echo %s | sudo -S ls"),
    *(
        "Password for 'https://bob@github.com': %s",
        'Password for "https://git.x.com": %s',
        "printf 'bob:%s' | chpasswd",
    ),
    *(
        "Enter passphrase for key '/home/bob/.ssh/id_ed25519': %s",
        "# requirepass %s",
        "docker login --password-stdin <<< '%s'",
    ),
]
PASTED = {
    "variables named by their last part": _LAST_PARTS,
    "a type before the sign": _TYPED,
    "triple quotation marks": _TRIPLE,
    "lists and mappings": _LISTS,
    "sections": _SECTIONS,
    "a label on the line above": _LABELS,
    "positional arguments and columns": _POSITIONAL,
    "commands and prompts": _COMMANDS,
}

HARMLESS = [
    # variables
    *("PRIMARY_KEY=id", "CACHE_KEY=kV8nQ3zR7tLm2XwPq9", "FOREIGN_KEY: user_id", "PUBLIC_KEY=kV8nQ3zR7tLm2XwPq9"),
    *(
        "cache_key = 8f14e45fceea167a5a36dedd4bea2543",
        "sort_key: created_at2024index",
        "IDEMPOTENCY_KEY=a1b2c3d4e5f6a7b8",
    ),
    *(
        "STRIPE_KEY=os.environ['STRIPE_KEY']",
        "STRIPE_KEY=${STRIPE_KEY}",
        "SENDGRID_KEY=your-sendgrid-key",
        "API_PAT=<token>",
    ),
    *(
        "partition_key=tenant42orders7x",
        "session_key: agent:alice:main-2",
        "BASIC_AUTH=true",
        "GIT_PAT: see 1Password",
        "SSH_AUTH=agent",
    ),
    *(
        "STRIPE_PUBLISHABLE_KEY=true",
        "map_key = get_key(a1)",
        "REGISTRY_KEY=HKLM\\Software\\App2",
        "stripe_key = settings.stripe_key2",
    ),
    # types
    *("password: str = ''", "password: str", "token: Optional[str] = None", "apiKey: string = process.env.API_KEY2"),
    *(
        "password: str = Field(min_length=12)",
        "secret: str = 'changeme'",
        "token: string = `${base}/v2`",
        "let token: &str = token2;",
    ),
    *(
        "password: The format = 'plain2' is documented below",
        "tokens: list[int] = [101, 2023]",
        "token: Token = Token('<s>')",
    ),
    # triple quotation marks
    *('password = """"""', 'def password():\n    """Return the password of user2."""', "secret = '''see docs2'''"),
    # lists and sections
    *(
        'special_tokens = ["[CLS]", "<s>", "</s>"]',
        "tokens: ['the', 'cat', 'sat2']",
        'tokens = ["kubernetes", "v1.29"]',
    ),
    *(
        '"passwords": ["<generated>"]',
        "passwords: []",
        "secrets: [db-credentials, api-tokens-v2]",
        "tokens = (12, 4096, 8192)",
        "tokens = {\n  'space': [\n    (r'^\\s*#if\\s+0', Comment.Preproc, 'if0'),",
        "tokens = {\n  # copied from PerlLexer2:\n  'balanced-regex': [",
    ),
    *(
        "secrets:\n  db:\n    external: true",
        "[secrets]\nbackend = 'vault'",
    ),
    *(
        "secrets:\n  file: ./db_password.txt",
        "secrets:\n  path: kv/data/app2\nimage: x@8f14e45fceea167a5a36dedd4bea2543",
    ),
    *(
        "credentials:\n  region: eu-central-1",
        "[credentials]\nsource = environment2",
        "_, password = (base64.b64decode(rest, validate=True))",
        "passwords = [check(x, Strict=True2)]",
    ),
    # labels
    *(
        "Password\nMust have 12 characters",
        "Password\nrequired",
        "## Password\nThe rules changed in v2.",
        "Secret\nManager",
    ),
    *(
        "Token\nBucket2 algorithm",
        "reset the password\nhttps://example.com/reset/2024",
        "Password\n********",
        "Pass\n\\fB\\-Q2\\fR",
        "in MasterAuth\nfield2 of it",
        "token\ntests/test_token2.py",
    ),
    *(
        "API key\nsettings.api_key2",
        "forgot password\nuser@example.com",
        "access token\n2024-01-31",
        "Username\nbob\nPassword\n(unchanged)",
    ),
    # positions
    *("new PDO($dsn, 'bob', $password)", "getConnection(url, user2, pass2)", "server.login('bob', os.environ['PW2'])"),
    *(
        "INSERT INTO users (name, password) VALUES ('bob', ?)",
        "INSERT INTO users (name, password) VALUES (:name, :password)",
    ),
    *(
        "INSERT INTO t (name, password) VALUES ('kV8nQ3zR7tLm', '')",
        "INSERT INTO posts (title) VALUES ('kV8nQ3zR7tLm2XwPq9')",
    ),
    *("INSERT INTO u (name, password_hash) VALUES ('b', '$2b$12$abcdefghijklmnopqrstuv')", "auth=(user, password2)"),
    # commands
    *("requirepass must be set in redis.conf", "masterauth <password>", "echo $TOKEN | docker login --password-stdin"),
    *(
        "gh auth login --with-token < token.txt",
        "curl -b cookies.txt https://x.com",
        "htpasswd -c /etc/nginx/.htpasswd bob",
    ),
    *(
        "cat token2.txt | gh auth login --with-token",
        "curl --proxy-user bob https://x.com",
        "mysql -b test2 < dump.sql",
    ),
    *("proxy_set_header Authorization $http_authorization;", "Password for 'https://bob@github.com': "),
    *("Enter passphrase for key '/home/bob/.ssh/id_rsa': ", 'add_header Authorization "" always;'),
]
