"""Secrets and clean notes, generated from a seed, so that the repository contains no secret."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
import uuid

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALPHABETS = {
    "a": LOWER + UPPER + DIGITS,
    "h": "0123456789abcdef",
    "w": LOWER + UPPER + DIGITS + "_",
    "d": DIGITS,
    "U": UPPER + DIGITS,
    "l": LOWER + DIGITS,
    "b": LOWER + UPPER + DIGITS + "+/",
}
_SLOT = re.compile(r"\{([a-zA-Z])(\d+)\}")


def drawn(rng: random.Random, alphabet: str, count: int) -> str:
    """Return ``count`` characters, with a digit, a lower-case and an upper-case letter if the alphabet has them."""
    chars = [rng.choice(alphabet) for _ in range(count)]
    kinds = [kind for kind in (DIGITS, LOWER, UPPER) if set(kind) & set(alphabet)]
    for at, kind in zip(rng.sample(range(count), min(len(kinds), count)), kinds, strict=False):
        chars[at] = rng.choice([char for char in kind if char in alphabet])
    return "".join(chars)


def shaped(rng: random.Random, shape: str) -> str:
    """Return a token of ``shape``: ``{a36}`` means 36 letters and digits (see ``ALPHABETS``), ``^`` means nothing."""
    return _SLOT.sub(lambda slot: _filled(rng, slot[1], int(slot[2])), shape.replace("^", ""))


def _filled(rng: random.Random, kind: str, count: int) -> str:
    """Return ``count`` characters of an alphabet; for B and P the base64 form of ``user:…`` and of a private key."""
    if kind == "B":
        return base64.b64encode(f"ci:{drawn(rng, ALPHABETS['a'], count)}".encode()).decode()
    if kind == "P":
        return base64.b64encode(f"-----BEGIN PRIVATE KEY-----\n{drawn(rng, ALPHABETS['b'], count)}".encode()).decode()
    return drawn(rng, ALPHABETS[kind], count)


# (kind, shape, sentence). The circumflex prevents a prefix from being recognized in this file.
SHAPES = [
    ("aws-key", "AK^IA{U16}", "the deploy key is %s"),
    ("aws-key", "AS^IA{U16}", "temporary key %s"),
    ("aws-key", "AB^IA{U16}", "bearer id %s"),
    ("aws-key", "AC^CA{U16}", "context id %s"),
    ("aws-key", "A3^TX{U16}", "id %s"),
    ("aws-key", "AB^SK{a100}", "bedrock %s"),
    ("github-token", "gh^p_{a36}", "CI clones with %s"),
    ("github-token", "gh^o_{a36}", "oauth %s"),
    ("github-token", "gh^u_{a36}", "user to server %s"),
    ("github-token", "gh^s_{a36}", "server token %s."),
    ("github-token", "gh^r_{a76}", "refresh with %s!"),
    ("github-token", "github_^pat_{a22}_{a59}", "fine-grained %s"),
    ("gitlab-token", "gl^pat-{w20}", "runner uses %s"),
    ("gitlab-token", "gl^dt-{w20}", "deploy %s"),
    ("gitlab-token", "gl^rt-{w20}", "runner %s"),
    ("gitlab-token", "gl^rtr-{w20}", "runner registration %s"),
    ("gitlab-token", "gl^cbt-{w20}", "job %s"),
    ("gitlab-token", "gl^ptt-{w40}", "trigger %s"),
    ("gitlab-token", "gl^ft-{w20}", "feed %s"),
    ("gitlab-token", "gl^imt-{w25}", "mail %s"),
    ("gitlab-token", "gl^agent-{w50}", "agent %s"),
    ("gitlab-token", "gl^soat-{w20}", "scim %s"),
    ("gitlab-token", "gl^ffct-{w20}", "flags %s"),
    ("gitlab-token", "gl^wt-{w20}", "workspace %s"),
    ("gitlab-token", "gl^oas-{a64}", "app secret %s"),
    ("gitlab-token", "GR13^48941{w20}", "registration %s"),
    ("slack-token", "xo^xb-{d12}-{d12}-{a24}", "bot %s"),
    ("slack-token", "xo^xp-{d12}-{d12}-{d12}-{h32}", "user %s"),
    ("slack-token", "xo^xa-2-{d12}-{a30}", "app %s"),
    ("slack-token", "xo^xc-{d12}-{d12}-{h64}", "client %s"),
    ("slack-token", "xo^xd-{a60}", "cookie value %s"),
    ("slack-token", "xo^xe-1-{a140}", "refresh %s"),
    ("slack-token", "xo^xe.xoxp-1-{a160}", "rotating %s"),
    ("slack-token", "xo^xo-{d12}-{a24}", "old %s"),
    ("slack-token", "xo^xr-{d12}-{a24}", "r %s"),
    ("slack-token", "xo^xs-{d12}-{d12}-{a24}", "s %s"),
    ("slack-token", "xa^pp-1-{U11}-{d13}-{h64}", "app level %s"),
    ("slack-webhook", "https://hooks.sl^ack.com/services/T{U8}/B{U8}/{a24}", "post to %s"),
    ("stripe-key", "sk_^live_{a24}", "stripe %s"),
    ("stripe-key", "sk_^test_{a24}", "stripe test %s"),
    ("stripe-key", "rk_^live_{a24}", "restricted %s"),
    ("stripe-key", "rk_^test_{a24}", "restricted test %s"),
    ("stripe-key", "wh^sec_{a32}", "webhook signing %s"),
    ("openai-key", "sk^-{a20}T3BlbkFJ{a20}", "openai %s"),
    ("openai-key", "sk^-proj-{w120}", "project %s"),
    ("openai-key", "sk^-svcacct-{w120}", "service account %s"),
    ("anthropic-key", "sk^-ant-api03-{w93}AA", "claude %s"),
    ("api-key", "sk^-or-v1-{h64}", "router %s"),
    ("api-key", "sk^-lf-{h8}-{h4}-{h4}-{h4}-{h12}", "traces %s"),
    ("api-key", "gs^k_{a52}", "groq %s"),
    ("api-key", "xa^i-{a80}", "grok %s"),
    ("api-key", "r8^_{a37}", "replicate %s"),
    ("api-key", "nv^api-{w64}", "nim %s"),
    ("api-key", "pp^lx-{a48}", "perplexity %s"),
    ("api-key", "fw^_{a24}", "fireworks %s"),
    ("api-key", "tv^ly-dev-{a32}", "search %s"),
    ("api-key", "re^_{a8}_{a24}", "mail %s"),
    ("huggingface-token", "hf^_{a34}", "hub %s"),
    ("huggingface-token", "api_^org_{a34}", "org %s"),
    ("google-key", "AI^za{w35}", "maps %s"),
    ("google-key", "GOC^SPX-{w28}", "oauth %s"),
    ("google-key", "ya^29.{w60}", "access %s"),
    ("google-key", "1/^/0{w40}", "refresh %s"),
    ("azure-key", "Acc^ountKey={b86}==", "AccountName=x;%s;"),
    ("azure-key", "Shared^AccessKey={b43}=", "EntityPath=q;%s"),
    ("azure-key", "{a3}8Q^~{a32}", "client %s"),
    ("azure-key", "{a76}AZ^DO{a4}", "devops %s"),
    ("sendgrid-key", "S^G.{w22}.{w43}", "mail %s"),
    ("mailchimp-key", "{h32}-u^s12", "mailchimp %s"),
    ("mailgun-key", "ke^y-{h32}", "mailgun %s"),
    ("twilio-key", "S^K{h32}", "twilio %s"),
    ("twilio-key", "A^C{h32}", "Twilio account %s"),
    ("square-key", "sq0^csp-{w43}", "square %s"),
    ("square-key", "EA^AAl{w60}", "square %s"),
    ("square-key", "EA^AAE{w60}", "square %s"),
    ("facebook-token", "EA^AC{a120}", "graph %s"),
    ("facebook-token", "EA^AM{a120}", "graph %s"),
    ("facebook-token", "EA^AB{a120}", "graph %s"),
    ("telegram-token", "{d10}:{w35}", "telegram %s"),
    ("discord-token", "M{a23}.{w6}.{w27}", "discord %s"),
    ("discord-token", "dis^cord.com/api/webhooks/{d18}/{w68}", "post to %s"),
    ("discord-token", "dis^cordapp.com/api/webhooks/{d18}/{w68}", "post to %s"),
    ("npm-token", "np^m_{a36}", "publish with %s"),
    ("pypi-token", "py^pi-AgEIcHlwaS5vcmc{w80}", "upload with %s"),
    ("rubygems-key", "ruby^gems_{h48}", "gem push %s"),
    ("crates-token", "ci^o{a32}", "cargo login %s"),
    ("nuget-key", "oy^2{l43}", "push %s"),
    ("docker-token", "dckr_^pat_{w27}", "hub %s"),
    ("docker-token", "dckr_^oat_{w32}", "org %s"),
    ("digitalocean-token", "do^p_v1_{h64}", "droplets %s"),
    ("digitalocean-token", "do^o_v1_{h64}", "oauth %s"),
    ("digitalocean-token", "do^r_v1_{h64}", "refresh %s"),
    ("shopify-token", "shp^at_{h32}", "shop %s"),
    ("shopify-token", "shp^ss_{h32}", "shop %s"),
    ("shopify-token", "shp^ca_{h32}", "shop %s"),
    ("shopify-token", "shp^pa_{h32}", "shop %s"),
    ("shopify-token", "shp^tka_{h32}", "shop %s"),
    ("vault-token", "hv^s.{w24}", "vault %s"),
    ("vault-token", "hv^b.{w120}", "batch %s"),
    ("vault-token", "hv^r.{w120}", "recovery %s"),
    ("terraform-token", "{a14}.at^lasv1.{w64}", "cloud %s"),
    ("linear-key", "lin_^api_{a40}", "linear %s"),
    ("linear-key", "lin_^oauth_{a64}", "linear %s"),
    ("notion-token", "nt^n_{a46}", "notion %s"),
    ("notion-token", "secr^et_{a43}", "notion %s"),
    ("databricks-token", "da^pi{h32}", "bricks %s"),
    ("doppler-token", "dp^.pt.{a43}", "doppler %s"),
    ("doppler-token", "dp^.st.dev_{a43}", "doppler %s"),
    ("doppler-token", "dp^.sa.{a43}", "doppler %s"),
    ("doppler-token", "dp^.ct.{a43}", "doppler %s"),
    ("doppler-token", "dp^.scim.{a43}", "doppler %s"),
    ("doppler-token", "dp^.audit.{a43}", "doppler %s"),
    ("postman-key", "PM^AK-{h24}-{h34}", "postman %s"),
    ("grafana-token", "gl^sa_{a32}_{h8}", "dashboards %s"),
    ("grafana-token", "gl^c_{b120}", "cloud %s"),
    ("supabase-key", "sb^p_{h40}", "supabase %s"),
    ("supabase-key", "sb_^secret_{w31}", "supabase %s"),
    ("sentry-token", "sntr^ys_{b80}", "sentry %s"),
    ("sentry-token", "sntr^yu_{h64}", "sentry %s"),
    ("atlassian-token", "ATA^TT3{w180}", "jira %s"),
    ("atlassian-token", "AT^BB{a32}", "bitbucket %s"),
    ("figma-token", "fi^gd_{w40}", "figma %s"),
    ("age-key", "AGE-^SECRET-KEY-1{U58}", "age %s"),
    ("pulumi-token", "pu^l-{h40}", "stacks %s"),
    ("tailscale-key", "ts^key-auth-{a17}-{a32}", "tailnet %s"),
    ("cloudflare-token", "cf^ut_{w48}", "zone %s"),
    ("cloudflare-token", "cf^at_{w48}", "zone %s"),
    ("cloudflare-token", "cf^k_{w48}", "zone %s"),
    ("posthog-key", "ph^c_{a43}", "events %s"),
    ("posthog-key", "ph^x_{a43}", "events %s"),
    ("posthog-key", "ph^s_{a43}", "events %s"),
    ("newrelic-key", "NR^AK-{U27}", "apm %s"),
    ("dynatrace-token", "dt^0c01.{U24}.{U64}", "metrics %s"),
    ("planetscale-token", "psc^ale_tkn_{w43}", "branch %s"),
    ("buildkite-token", "bk^ua_{a40}", "pipeline %s"),
    ("buildkite-token", "bk^aa_{a40}", "pipeline %s"),
    ("buildkite-token", "bk^xt_{a40}", "pipeline %s"),
    ("circleci-token", "CCIP^RJ_{a22}_{h40}", "workflow %s"),
    ("circleci-token", "CCIP^AT_{a22}_{h40}", "workflow %s"),
    ("flyio-token", "fm^1_{b100}", "machines %s"),
    ("flyio-token", "fm^1a_{b100}", "machines %s"),
    ("flyio-token", "fm^1r_{b100}", "machines %s"),
    ("flyio-token", "fm^2_{b100}", "machines %s"),
    ("hubspot-token", "pa^t-na1-{h8}-{h4}-{h4}-{h4}-{h12}", "crm %s"),
    ("airtable-token", "pa^t{a14}.{h64}", "base %s"),
    ("sonar-token", "sq^p_{h40}", "scan %s"),
    ("sonar-token", "sq^u_{h40}", "scan %s"),
    ("sonar-token", "sq^a_{h40}", "scan %s"),
    ("1password-token", "op^s_eyJ{w200}", "vaults %s"),
    ("artifactory-token", "AK^C{a69}", "artifacts %s"),
    ("adafruit-key", "ai^o_{a28}", "feeds %s"),
    ("easypost-key", "EZ^AK{a54}", "parcels %s"),
    ("easypost-key", "EZ^TK{a54}", "parcels %s"),
    ("clerk-key", "ak_^live_{a40}", "clerk %s"),
    ("clerk-key", "ck_^live_{a40}", "clerk %s"),
    ("stripe-key", "sk_^org_live_{a40}", "organization %s"),
    ("stripe-key", "sk_^org_test_{a40}", "organization %s"),
    ("discord-token", "dis^cord.com/api/v10/webhooks/{d18}/{w68}", "post to %s"),
    ("linear-key", "lin_^wh_{a40}", "webhook %s"),
    ("sentry-token", "sntr^ya_{h64}", "app %s"),
    ("supabase-key", "sb^a_{h40}", "oauth %s"),
    ("shopify-token", "shp^rt_{h32}", "refresh %s"),
    ("shopify-token", "shp^ua_{h32}", "user %s"),
    ("atlassian-token", "ATC^TT3{w180}", "repository %s"),
    ("age-key", "AGE-^SECRET-KEY-PQ-1{U58}", "age %s"),
    ("aws-key", "AB^SK{b100}", "bedrock %s"),
    ("private-key", "{P300}", "client-key-data: %s"),
    ("docker-token", "ey^JhdXRocyI6{b120}", ".dockerconfigjson: %s"),
    ("docker-token", "{B14}", '{"auths": {"hub": {"auth": "%s"}}}'),
    ("docker-token", "{B14}", '{"auths":{"hub":{"auth":"%s"}}}'),
    ("npm-token", "{B14}", "//registry.internal/:_auth=%s"),
    ("npm-token", "{B14}", "_auth = %s"),
    ("kubernetes-token", "{l6}.{l16}", "kubeadm join 10.0.0.1:6443 --token %s"),
    ("kubernetes-token", "{h64}", "kubeadm join --control-plane --certificate-key %s"),
    ("neon-key", "np^g_{a12}", "the database role uses %s"),
    ("neon-key", "na^pi_{l64}", "neonctl %s"),
    ("azure-key", "{a43}%3D", "https://acc.blob.core.windows.net/c?sv=2022-11-02&sr=c&sig=%s"),
    ("azure-key", "{b43}=", "SharedAccessSignature sr=x&skn=k&sig=%s"),
    ("azure-key", "{a52}JQ^QJ99{a20}", "vision %s"),
    ("azure-key", "{a44}Az^Fu{a8}==", "function %s"),
    ("azure-key", "{a42}Az^Se{a6}", "search %s"),
    ("azure-key", "{a42}+A^CR{a6}", "registry %s"),
    ("aws-session", "IQoJ^b3JpZ2lu{b300}", "session %s"),
    ("aws-session", "FwoG^ZXIvYXdz{b300}", "session %s"),
    ("aws-key", "bedrock^-api-key-{b100}", "bedrock %s"),
    ("google-key", "GOO^G1E{U55}", "interoperability %s"),
    ("slack-token", "xw^fp-{d12}-{a40}", "workflow %s"),
    ("telegram-token", "{d10}:{w35}", "https://api.telegram.org/bot%s/getMe"),
    ("discord-token", "mf^a.{w84}", "account %s"),
    ("mailgun-key", "{h32}-{h8}-{h8}", "mailgun %s"),
    ("datadog-key", "dd^app_{a34}", "datadog %s"),
    ("datadog-key", "dd^pat_{a40}", "datadog %s"),
    *(("vercel-token", f"vc^{letter}_{{a56}}", "vercel %s") for letter in "pairk"),
    ("vercel-token", "vercel_^blob_rw_{a16}_{a30}", "blob %s"),
    ("heroku-key", "HR^KU-{h8}-{h4}-{h4}-{h4}-{h12}", "dynos %s"),
    ("heroku-key", "HR^KU-AA{w58}", "dynos %s"),
    *(("netlify-token", f"nf^{letter}_{{a36}}", "netlify %s") for letter in "pcob"),
    ("render-key", "rn^d_{a32}", "render %s"),
    ("flyio-token", "fo^1_{w43}", "machines %s"),
    ("deno-token", "dd^p_{a36}", "deno %s"),
    ("deno-token", "dd^o_{a36}", "deno %s"),
    ("mongodb-key", "mdb_^sa_sk_{w40}", "atlas %s"),
    ("brevo-key", "xkey^sib-{h64}-{a16}", "mail %s"),
    ("brevo-key", "xsmtp^sib-{h64}-{a16}", "mail %s"),
    ("snyk-token", "snyk^_uat.{h8}.{w40}", "scan %s"),
    ("snyk-token", "snyk^_sat.{h8}.{w40}", "scan %s"),
    ("trello-token", "AT^TA{h72}", "boards %s"),
    *(
        ("plaid-token", f"access-^{stage}-{{h8}}-{{h4}}-{{h4}}-{{h4}}-{{h12}}", "bank %s")
        for stage in ("production", "development", "sandbox")
    ),
    ("mapbox-token", "sk.^eyJ{w60}.{w22}", "maps %s"),
    ("contentful-token", "CF^PAT-{w43}", "content %s"),
    ("typeform-token", "tf^p_{w44}_{w14}", "forms %s"),
    ("langsmith-key", "lsv2_^pt_{h32}_{h10}", "traces %s"),
    ("langsmith-key", "lsv2_^sk_{h32}_{h10}", "traces %s"),
    ("api-key", "wandb_^v1_{w77}", "runs %s"),
    ("api-key", "pc^sk_{a5}_{a63}", "vectors %s"),
    ("api-key", "tgp_^v1_{w43}", "together %s"),
    ("api-key", "cs^k-{l48}", "cerebras %s"),
    ("api-key", "f^c-{h32}", "crawl %s"),
    ("api-key", "ji^na_{h32}{w24}", "reader %s"),
    ("api-key", "e2^b_{h40}", "sandbox %s"),
    ("sourcegraph-token", "sg^p_{h16}_{h40}", "code search %s"),
    ("readme-key", "rd^me_{l70}", "docs %s"),
    ("payment-key", "FLW^SECK-{h32}-X", "payments %s"),
    ("payment-key", "FLW^SECK_TEST-{h32}-X", "payments %s"),
    ("jwt", "ey^JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.ey^JzdWIiOiIxIn0.{w43}", "session %s"),
]

# (sentence, shape of the secret in it): values that are secrets only because of their context.
PLACES = [
    ("<password>%s</password>", "{a4}!{a6}"),
    ("<db:password>%s</db:password>", "{a12}"),
    ("<wsse:Password Type='PasswordText'>%s</wsse:Password>", "sommerregen"),
    ("<clientSecret><![CDATA[%s]]></clientSecret>", "{a24}"),
    ('{"cmd": "curl -d \'{\\"password\\": \\"%s\\"}\'"}', "{a10}"),
    ('"{\\"user\\":\\"x\\",\\"password\\":\\"%s\\"}"', "{a10}"),
    ('{\\\\\\"secret\\\\\\": \\\\\\"%s\\\\\\"}', "{a20}"),
    ("&quot;password&quot;: &quot;%s&quot;", "{a12}"),
    ("mysql -u root -p%s shop", "geheim{d2}x"),
    ("mysqldump -h db -uroot -p'%s' shop > dump.sql", "{a12}"),
    ("mysql --password=%s shop", "regenschirm"),
    ("mariadb --user=app --password=%s", "{a12}"),
    ("sshpass -p %s ssh deploy@host", "regenschirm"),
    ("sshpass -p'%s' scp a b:", "{a12}"),
    ("redis-cli -h cache -a %s ping", "regenschirm"),
    ("docker login -u ci -p %s registry.internal", "regenschirm"),
    ("az login --service-principal -u app -p %s", "{a30}"),
    ("sqlcmd -S db -U sa -P %s", "{a10}!"),
    ("plink -ssh host -pw %s", "{a10}"),
    ("ldapsearch -D cn=admin -w %s -b dc=x", "{a10}"),
    ("7z x backup.7z -p%s", "{a10}"),
    ("keytool -list -keystore k -storepass %s", "{a10}"),
    ("docker exec -it db mysql -uroot -p%s shop", "{a10}"),
    ("kubectl exec pod-1 -- mysql -uroot -p%s", "{a10}"),
    ("The staging database: mysql -h db -u app -p%s shop", "{a10}"),
    ("$ mysqldump shop -p%s > shop.sql", "{a10}"),
    ("mysql \\\n  -u root \\\n  -p%s", "{a10}"),
    ("Run `sshpass -p %s ssh deploy@host`.", "{a10}"),
    ("curl -u admin:%s https://ci.internal", "regenschirm"),
    ("curl --user admin:%s https://ci.internal", "{a8}&{d2}"),
    ("smbclient //srv/share -U user%%%s", "{a10}"),
    ("openssl rsa -in k.pem -passin pass:%s", "{a10}"),
    ("db.internal:5432:main:app:%s", "regenschirm"),
    ("*:*:*:postgres:%s", "{a10}"),
    ("~/.pgpass:\n\n    localhost:6543:shop:me:%s\n", "{a10}"),
    ("echo 'localhost:5432:shop:me:%s' >> ~/.pgpass", "regenschirm"),
    ("machine github.com login me password %s", "{a20}"),
    ("Cookie: theme=dark; sessionid=%s", "{l32}"),
    ("Set-Cookie: sid=%s; Path=/; HttpOnly", "{a24}"),
    ("Set-Cookie: connect.sid=s%%3A%s; Path=/", "{a32}"),
    ("the browser sent PHPSESSID=%s", "{l26}"),
    ("JSESSIONID=%s stays valid", "{U32}"),
    ("curl --cookie 'sessionid=%s' localhost", "{l32}"),
    ("\u0440\u0430ssword: %s", "{a12}"),
    ("\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1d%s", "{a12}"),
    ("p\u0430ssw\u043erd = '%s'", "{a12}"),
    ("pass\u200bword=%s", "{a12}"),
    ("\u0455ecret_key=%s", "{a24}"),
    ("Passwort: %s", "{a8}"),
    ("Das Passwort lautet %s", "Tr{d2}b{d1}dor&{d1}"),
    ("Kennwort = %s", "{a8}"),
    ("das Kennwort ist %s", "Tr{d2}b{d1}dor&{d1}"),
    ("contrase\u00f1a: %s", "{a10}"),
    ("wachtwoord: %s", "{a10}"),
    ("password=%s", "{l10}"),
    ('password = "%s"', "{l8}"),
    ("the staging password: %s", "{l8}"),
    ("the root password is %s", "Tr{d2}b{d1}dor&{d1}"),
    ('my password is "%s"', "{l10}"),
    ("DB_PASSWORD=%s in .env", "x{d1}$k{a4}"),
    ("PGPASSWORD='%s' psql", "{a8}"),
    ("MYSQL_PWD=%s mysql", "{a10}"),
    ("ALTER USER app WITH PASSWORD '%s'", "{a10}"),
    ("CREATE USER app IDENTIFIED BY '%s'", "{a10}"),
    ('<add key="password" value="%s"/>', "{a10}"),
    ('{"client_secret": "%s"}', "{a32}"),
    ("api_key: %s", "{a32}"),
    ("apiKey=%s", "{a24}"),
    ("X-Api-Key: %s", "{h32}"),
    ("authtoken=%s", "{a32}"),
    ("service run --token %s", "{a24}"),
    ("deploy --db-password %s now", "regenschirm"),
    ("spring.datasource.password=%s", "w{d1}lc{d1}me!"),
    ("signing_key := '%s'", "{h32}"),
    ("//registry.npmjs.org/:_authToken=%s", "{h36}"),
    ("https://api.internal/v1?token=%s&page=2", "{a32}"),
    ('aws_secret_access_key = "%s"', "{b40}"),
    ("Authorization: Bearer %s", "{a40}"),
    ("Authorization: Basic %s", "{a24}="),
    ('"Authorization": "token %s"', "{h40}"),
    ("curl -H 'authorization: bearer %s' x", "{a40}"),
    ("postgres://app:%s@db.internal:5432/main", "s{d1}cr{a4}"),
    ("redis://:%s@cache:6379/0", "regenschirm"),
    ("mongodb+srv://root:%s@cluster0.mongodb.net", "{a10}"),
    ("amqp://user:%s@rabbit", "p@ss{a6}"),
    ("client-key-data: %s", "{b200}"),
    ('{"client-key-data": "%s"}', "{b200}"),
    ('"identitytoken": "%s"', "{w40}"),
    ("DSN=app:%s@tcp(127.0.0.1:3306)/shop", "{a14}"),
    ("app:%s@unix(/run/mysqld.sock)/shop", "{a10}!"),
    ("apiVersion: v1\nkind: Secret\ndata:\n  user: %s\n", "{l11}="),
    ("kind: Secret\nstringData:\n  config: |\n    %s\ntype: Opaque", "regenschirm"),
    ("data:\n  a: '%s'\nkind: Secret\nmetadata:\n  name: x", "regenschirm"),
    ("      token: %s", "ey^JhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.ey^JpbXMiOiJrOHMifQ.{w86}"),
]

AWS_PAIRS = [
    "%s / %s",
    "id %s, secret %s",
    "aws configure: %s %s eu-central-1",
    "key_id: %s\nthe other half:\n%s",
    "| %s | %s |",
]


def secrets(seed: int) -> list[tuple[str, str]]:
    """Return texts, each with its secret."""
    rng = random.Random(seed)
    made = [(sentence % (secret := shaped(rng, shape)), secret) for _, shape, sentence in SHAPES]
    made += [(sentence % (secret := shaped(rng, shape)), secret) for sentence, shape in PLACES]
    for sentence in AWS_PAIRS:
        secret = shaped(rng, "{b40}")
        made.append((sentence % (shaped(rng, "AK^IA{U16}"), secret), secret))
    return made


DOCUMENTED = [
    "AK^IAIOSFODNN7EXAMPLE is the id of the AWS documentation",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AK^IAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "OPENAI_API_KEY=sk^-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "export ANTHROPIC_API_KEY=sk^-ant-your-key-here-0123456789",
    "gh^p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx stands for the token",
    "token: <your-token>",
    "export TOKEN=${TOKEN}",
    "password: ****",
    "password: ********",
    "PASSWORD=<password>",
    "api_key: YOUR_API_KEY",
    "api_key = your_api_key_here",
    "mysql -u root -p$MYSQL_PASSWORD shop",
    "mysql -u root -p shop asks for the password",
    "mysql -h db -P 3306 -u root",
    "sshpass -p $PASS ssh host",
    "sshpass -e ssh host",
    "docker run -p 8080:80 nginx:1.27",
    "docker login -u ci -p $CI_TOKEN",
    "mkdir -p src/a1/b2 && cp -p a1 b2",
    "ssh -p 2222 deploy@host1",
    "psql -h db -p 5432 -U app1 shop",
    "curl -u $USER:$PASS https://x",
    "host:port:database:user:password is the form of a .pgpass line",
    "src/main.py:12:5:E501:line",
    "Cookie: theme=dark; lang=en1234567",
    "Set-Cookie: sessionid=<id>; HttpOnly",
    "<password>${db.password}</password>",
    "<password>****</password>",
    "<token>identifier</token>",
    '"password": "string"',
    '{\\"password\\": \\"<password>\\"}',
    "https://user:password@example.org/path",
    "https://$USER:$PASS@host/path",
    "postgres://user:xxxxx@localhost/db",
    "Das Passwort muss 12 Zeichen lang sein.",
    "Passwort: siehe Tresor",
    "the bundle SK0123456789abcdef0123456789abcdef is no key",
    "AC0123456789abcdef0123456789abcdef names the release",
    "d41d8cd98f00b204e9800998ecf8427e-us1 is the cache key of the region",
    "xo^xb-your-token-here",
    "Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "AI^zaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
    "-----BEGIN PRIVATE KEY----- opens the block",
    "-----BEGIN PUBLIC KEY-----",
    "\u043f\u0430\u0440\u043e\u043b\u044c: \u0441\u043c. \u0441\u0435\u0439\u0444",
]

_TEXT_OF_WORDS = """
    the writer commits group transaction searcher recall vector index token password secret key session cookie
    request header retry timeout lease queue batch import export note memory tag project config file path test
    fixture schema migration release branch deploy build cache server client login user admin access bearer
    credential policy rotate
"""
_WORDS = _TEXT_OF_WORDS.split()
_NAMES = ["src", "tests", "gateway", "store", "api", "auth", "token", "password_reset", "secrets", "keys", "session"]
_TEMPLATES = [
    "Commit {sha} broke the {w} in {path}:{n}.",
    "The sha256 of {file} is {sha256}; md5 {md5}.",
    "Job {uuid} of the {w} went to the dead letters after {n} attempts.",
    "{w} {w} {w} {w} {w}; see {path}.",
    "We decided that the {w} {w} must never hold the {w} for more than {n} ms.",
    "{snake}={n} and {camel}={n} are the defaults of the {w}.",
    "{snake}: {w}",
    "def {snake}({w}: str, {w}2: int = {n}) -> str: return {camel}({w})",
    "const {camel} = await {camel}.{camel}({{ {w}: {n}, {w}2: '{w}' }});",
    "The {w} listens on http://localhost:{port}/{w}/{n} and answers {w}.",
    "git clone git@github.com:acme/{w}-{n}.git && cd {w}-{n} && git checkout {sha7}",
    "docker run -d -p {port}:{port} --name {w}-{n} registry.internal/{w}:{ver}",
    "{ver} of {w}-{w} fixes the {w} of {ver}; tag {w}-v{ver}.",
    "ERROR {date}T10:{mm}:{mm}Z {w}.{w}: {w} {w} failed (code {n}, trace {uuid})",
    "password policy: at least {n} characters, bcrypt cost {n}, rotation every {n} days",
    "The {w} token is read from {UPPER} at start-up and never logged.",
    'token = os.environ["{UPPER}_{n}"]',
    "api_key: ${{{UPPER}}}  # set in {path}",
    "secret: {snake}_{n} in namespace {w}",
    "kubectl get secret {w}-{n} -n {w} -o yaml",
    "SELECT id, {snake} FROM {w} WHERE {w}_id = {n} ORDER BY created_at LIMIT {n};",
    "| {w} | {n} | {ver} | {sha7} |",
    "- [ ] {w}: {w} the {w} in `{path}` (#{n})",
    "session_key: agent:{w}:{w}-{n}, {w} {uuid}",
    "idempotency_key={w}-{date}-{n} makes the retry harmless",
    "pip install {w}=={ver} --hash=sha256:{sha256}",
    "https://example.org/{w}/{sha7}?page={n}&sort={w}#{w}-{n}",
    "Traceback: {path}:{n}: {w}: {camel} has no attribute '{snake}'",
    "import {{ {camel} }} from '@acme/{w}-{w}/{camel}';",
    "ssh -p {port} deploy@{w}-{n} 'systemctl restart {w}'",
    "{w}_test.py::test_{snake} PASSED [{n}%]",
    'ETag: "{md5}", Last-Modified {date}, {n} bytes',
    "image digest sha256:{sha256} ({w}:{ver})",
    "max_tokens={n}, temperature=0.{n}, model=qwen3:{n}b",
    "the {w} key is ({snake}, {snake}) and the foreign key points at {w}.id",
    "CREATE INDEX idx_{snake} ON {w}({snake}, {w}_at);",
]


def _note(rng: random.Random) -> str:
    def word() -> str:
        return rng.choice(_WORDS)

    def snake() -> str:
        return "_".join(rng.sample(_WORDS, rng.choice((2, 3))))

    def camel() -> str:
        first, *rest = rng.sample(_WORDS, rng.choice((2, 3)))
        return first + "".join(part.title() for part in rest)

    values = {
        "w": word,
        "n": lambda: str(rng.randint(1, 500)),
        "snake": snake,
        "camel": camel,
        "UPPER": lambda: snake().upper(),
        "sha": lambda: drawn(rng, ALPHABETS["h"], 40),
        "sha7": lambda: drawn(rng, ALPHABETS["h"], 7),
        "sha256": lambda: hashlib.sha256(rng.randbytes(8)).hexdigest(),
        "md5": lambda: drawn(rng, ALPHABETS["h"], 32),
        "uuid": lambda: str(uuid.UUID(bytes=rng.randbytes(16), version=4)),
        "path": lambda: f"{rng.choice(_NAMES)}/{rng.choice(_NAMES)}/{snake()}.{rng.choice(['py', 'ts', 'md', 'yaml'])}",
        "file": lambda: f"{snake()}-{rng.randint(1, 9)}.tar.gz",
        "ver": lambda: f"{rng.randint(0, 9)}.{rng.randint(0, 20)}.{rng.randint(0, 99)}",
        "port": lambda: str(rng.randint(1024, 65535)),
        "date": lambda: f"2024-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}",
        "mm": lambda: f"{rng.randint(0, 59):02d}",
    }
    lines = []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        template = rng.choice(_TEMPLATES).replace("{{", "\0").replace("}}", "\1")
        line = re.sub(r"\{(\w+)\}", lambda slot: values[slot[1]](), template)
        lines.append(line.replace("\0", "{").replace("\1", "}"))
    return "\n".join(lines)


def clean_notes(seed: int, count: int) -> list[str]:
    """Return typical developer notes without a secret: hashes, ids, paths, code, logs, and words like "token"."""
    rng = random.Random(seed)
    return [_note(rng) for _ in range(count)]


def documented() -> list[str]:
    """Return placeholders and documented examples."""
    return [text.replace("^", "") for text in DOCUMENTED]
