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

SET_NOTHING = {
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
