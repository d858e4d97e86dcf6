"""Prompts with pasted logs, traces, code and so on: what is stored, and what of it each prompt must be given."""

from __future__ import annotations

from typing import Final, NamedTuple


class Pasted(NamedTuple):
    """A prompt, and the memory that it must be given."""

    memory: str
    prompt: str


LOG: Final = "\n".join(
    f"2026-11-27T12:00:{second:02d}.{second * 37 % 1000:03d}Z {level} [worker-{second % 3}] app.Batch - {message}"
    for second, (level, message) in enumerate(
        [
            ("INFO", "starting up with 4 threads"),
            ("INFO", "connection pool opened, size=20 idle=4"),
            ("DEBUG", "loaded 118 rules from the cache"),
            ("INFO", "request GET /healthz took 3 ms"),
            ("WARN", "slow request: 812 ms for /orders?page=3"),
            ("INFO", "server listens on port 8080"),
            ("INFO", "user session refreshed"),
            ("ERROR", "timeout while waiting for a free connection"),
            ("INFO", "retry 1 of 5 in 200 ms"),
            ("INFO", "shutting down, bye"),
        ]
    )
)
CODE: Final = """```python
import asyncio

class Queue:
    def __init__(self, size: int) -> None:
        self.items = [None] * size

    async def pop(self):
        while not self.items:
            await asyncio.sleep(0.1)
        return self.items.pop()
```"""
DIFF: Final = """diff --git a/app/views.py b/app/views.py
index 83db48f..bf269f4 100644
--- a/app/views.py
+++ b/app/views.py
@@ -12,7 +12,7 @@ def show(request):
-    return render(request, "old.html")
+    return render(request, "new.html", {"page": 1})
"""
PROSE: Final = "\n\n".join(
    f"In meeting {number} we went through the backlog once more and moved several stories around, because marketing"
    " wants the campaign earlier. Nothing else came out of it, and the notes are in the usual folder for all to read."
    for number in range(60)
)
FLUX: Final = "The flux capacitor calibration needs the torque wrench from locker 17"
LOCK: Final = "The lock file of walrusgate lives in /run/walrus, because /tmp is wiped at night"
FERRY: Final = "Der Fahrplan der Fähre nach Helgoland wird von Frau Petersen gepflegt"
NOMINA: Final = "La nómina del taller se calcula con la hoja de Marisol, no con el programa"
LIBRARY: Final = "图书馆的备份脚本由王工每周五运行"
QUESTION: Final = "which tool does the flux capacitor calibration need?"

PASTED: Final = (
    # Traces
    Pasted(
        "KeyError 'tariff' in the importer means that the price list of last year is loaded",
        "Traceback (most recent call last):\n"
        '  File "/srv/app/jobs/run.py", line 88, in <module>\n    main()\n'
        '  File "/srv/app/jobs/load.py", line 17, in load\n    return row["tariff"]\n'
        "KeyError: 'tariff'",
    ),
    Pasted(
        "NullPointerException in TariffMapper: the customer has no contract yet, skip the row",
        "what does this mean?\n"
        'Exception in thread "main" java.lang.NullPointerException: Cannot invoke "Contract.id()" because "c" is null\n'
        "\tat com.acme.pricing.TariffMapper.map(TariffMapper.java:57)\n"
        "\tat java.base/java.util.stream.ReferencePipeline$3$1.accept(ReferencePipeline.java:197)\n"
        "\tat com.acme.Main.main(Main.java:12)",
    ),
    Pasted(
        "A panic in reconcileLedger comes from the empty currency table of the test database",
        "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 17 [running]:\n"
        "main.reconcileLedger(0xc000014250, 0x3)\n\t/go/src/app/ledger.go:41 +0x1d\ncreated by main.main\n"
        "\t/go/src/app/main.go:20 +0x65\nexit status 2",
    ),
    Pasted(
        "thread main panics in harbour::berth_planner when the tide table is older than a week",
        "thread 'main' panicked at src/berth_planner.rs:88:13:\ncalled `Option::unwrap()` on a `None` value\n"
        "stack backtrace:\n   0: rust_begin_unwind\n   1: core::panicking::panic_fmt\n"
        "   2: harbour::berth_planner::next\n",
    ),
    Pasted(
        "hydrateBasket fails in Safari because of the private mode, fall back to memory",
        "TypeError: Cannot read properties of undefined (reading 'items')\n"
        "    at hydrateBasket (webpack-internal:///./src/basket/store.ts:31:22)\n"
        "    at commitHookEffectListMount (react-dom.development.js:23150:26)\n"
        "    at flushPassiveEffects (react-dom.js:1)",
    ),
    # Compilers
    Pasted(
        "TS2345 in checkout.tsx is silenced on purpose, the types of the payment library are wrong",
        "src/checkout.tsx(41,18): error TS2345: Argument of type 'string | undefined' is not assignable to parameter of"
        " type 'string'.\n  Type 'undefined' is not assignable to type 'string'.",
    ),
    Pasted(
        "E0502 in the arena module: clone the index before the loop",
        "error[E0502]: cannot borrow `self.nodes` as mutable because it is also borrowed as immutable\n"
        "  --> src/arena.rs:77:9\n   |\n76 |     let n = &self.nodes[i];\n"
        "   |              ---------- immutable borrow here\n"
        "77 |     self.nodes.push(n.clone());\n   |     ^^^^^^^^^^ mutable borrow occurs here\n",
    ),
    Pasted(
        "undefined reference to calibrate_gyro: link with -lgyro before -lm",
        "how do I fix this?\n/usr/bin/ld: build/main.o: in function `main':\n"
        "main.c:(.text+0x1b): undefined reference to `calibrate_gyro'\ncollect2: error: ld returned 1 exit status\n"
        "make: *** [Makefile:12: app] Error 1",
    ),
    Pasted(
        "javac cannot find OutboxRelay until the annotation processor has run: mvn generate-sources first",
        "[ERROR] COMPILATION ERROR :\n[ERROR] /home/u/app/src/main/java/com/acme/Wiring.java:[19,9]"
        " cannot find symbol\n"
        "  symbol:   class OutboxRelay\n  location: class com.acme.Wiring\n[INFO] 1 error",
    ),
    Pasted(
        "CS8602 in the report designer can be ignored until the port to .NET 9",
        "Designer.cs(210,13): warning CS8602: Dereference of a possibly null reference. [/src/Report.csproj]",
    ),
    # Codes
    Pasted(
        "ORA-01555 appears when the nightly export runs longer than the undo retention",
        "java.sql.SQLException: ORA-01555: snapshot too old: rollback segment number 9 with name"
        ' "_SYSSMU9$" too small\n'
        "  at oracle.jdbc.driver.T4CTTIoer11.processError(T4CTTIoer11.java:494)",
    ),
    Pasted(
        "SQLSTATE 40P01 in the booking service: always lock the seat before the passenger",
        "how do we solve this?\n2026-11-27 09:13:04 UTC [4120] ERROR:  deadlock detected\n"
        "2026-11-27 09:13:04 UTC [4120] DETAIL:  Process 4120 waits for ShareLock on transaction 771;"
        " blocked by 4131.\n"
        "org.postgresql.util.PSQLException: SQLSTATE: 40P01",
    ),
    Pasted(
        "HTTP 429 from the geocoder means that the nightly batch runs twice",
        '10.4.2.9 - - [27/Nov/2026:12:00:03 +0000] "POST /v1/geocode HTTP/1.1" 429 118 "-" "batch/2.1" rt=0.003',
    ),
    Pasted(
        "0x8007045d when writing the image means that the card reader is broken, take the blue one",
        "Error 0x8007045D: The request could not be performed because of an I/O device error.",
    ),
    Pasted(
        "ECONNRESET on the upload endpoint means that the proxy has closed the connection after 30 s",
        "Error: read ECONNRESET\n    at TLSWrap.onStreamRead (node:internal/stream_base_commons:217:20) {\n"
        "  errno: -104,\n  code: 'ECONNRESET',\n  syscall: 'read'\n}",
    ),
    Pasted(
        "PGRST301 means that the clock of the tablet is wrong",
        '{"code":"PGRST301","details":null,"hint":null,"message":"JWT expired"}',
    ),
    # CI, containers, package managers
    Pasted(
        "CrashLoopBackOff of the mailer: the secret smtp-relay-3 is missing in the namespace",
        "NAME                      READY   STATUS             RESTARTS      AGE\n"
        "mailer-6d4cf56db6-x2k9p   0/1     CrashLoopBackOff   7 (2m ago)    13m\n"
        "web-7f9c6bd8d5-abcde      1/1     Running            0             2d",
    ),
    Pasted(
        "exit code 137 in the docker build means that the builder has less than 6 GB",
        '#14 ERROR: process "/bin/sh -c npm run build" did not complete successfully: exit code: 137\n------\n'
        " > [build 6/7] RUN npm run build:\n------",
    ),
    Pasted(
        "ERESOLVE with the chart package: pin it to the version in the wiki",
        "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\nnpm ERR!\n"
        "npm ERR! While resolving: shop@1.0.0\nnpm ERR! Found: react@19.0.0",
    ),
    Pasted(
        "The job deploy-canary needs the variable KUBE_CANARY_CONTEXT, which only maintainers may set",
        '$ kubectl --context "$KUBE_CANARY_CONTEXT" apply -f k8s/\nerror: context "" does not exist\n'
        "section_end:1732708800:step_script\nERROR: Job failed: exit code 1",
    ),
    # The user's own sentence beside something else
    Pasted(FLUX, f"{LOG}\n{QUESTION}"),
    Pasted(FLUX, f"{QUESTION}\n\n{LOG}"),
    Pasted(FLUX, f"{LOG}\n\n{QUESTION}\n\n{LOG}"),
    Pasted(FLUX, f"{LOG.replace(chr(10), ' ')} {QUESTION}"),
    Pasted(FLUX, f"{QUESTION} {LOG.replace(chr(10), ' ')}"),
    Pasted(FLUX, f"{CODE}\n{QUESTION}"),
    Pasted(FLUX, f"{QUESTION}\n{CODE}"),
    Pasted(FLUX, f"{PROSE}\n{PROSE}\n\n{QUESTION}"),
    Pasted(FLUX, f"{QUESTION}\n\n{PROSE}\n{PROSE}"),
    Pasted(FLUX, f"{PROSE}\n\n{QUESTION}\n\n{PROSE}"),
    Pasted(FLUX, f"{LOG * 30}\nPlease do the calibration of the flux capacitor with the right tool."),
    Pasted(FLUX, f"<ide_opened_file>The user opened /srv/app/run.py in the IDE.</ide_opened_file>\n{QUESTION}"),
    Pasted(FLUX, f"<system-reminder>\n{LOG}\n</system-reminder>\n{QUESTION}"),
    Pasted(FLUX, f"{LOG}\n\nPlease do the calibration of the flux capacitor.\n\n{LOG}\n\nThank you!"),
    Pasted(LOCK, f"{DIFF}\nwhere does walrusgate keep its lock file now?"),
    Pasted(LOCK, f"{LOG}\nCan you look up where the lock file of walrusgate is and delete it"),
    Pasted(FERRY, f"{LOG}\n\nWer pflegt eigentlich den Fahrplan der Fähre?"),
    Pasted(NOMINA, f"¿Con qué se calcula la nómina del taller?\n```\n{LOG}\n```"),
    Pasted(LIBRARY, f"{LOG}\n图书馆的备份脚本由谁运行\uff1f"),
    # Other tools and languages
    Pasted(
        "ledger_sync must run after the currency import, or it raises ZeroDivisionError in spread()",
        "Traceback (most recent call last):\n"
        '  File "/opt/ledger/ledger_sync.py", line 210, in spread\n'
        "    return total / count\n"
        "ZeroDivisionError: division by zero",
    ),
    Pasted(
        "OOMKilled on the pdf-renderer pod: raise the limit to 2Gi, fonts are the reason",
        "  Last State:     Terminated\n"
        "      Reason:       OOMKilled\n"
        "      Exit Code:    137\n"
        "  Name: pdf-renderer-7c4d8f9b6d-rr2kq",
    ),
    Pasted(
        "uq_booking_seat violations come from double clicks in the old kiosk",
        'ERROR:  duplicate key value violates unique constraint "uq_booking_seat"\n'
        "DETAIL:  Key (seat_id, show_id)=(44, 9) already exists.",
    ),
    Pasted(
        "0xC0000142 on the packing PC: reinstall the VC runtime",
        "The application was unable to start correctly (0xc0000142). Click OK to close the application.",
    ),
    Pasted(
        "refusing to merge unrelated histories happens with the old mirror; clone from forge instead",
        "$ git pull mirror main\n"
        "From mirror:app\n"
        " * branch            main       -> FETCH_HEAD\n"
        "fatal: refusing to merge unrelated histories",
    ),
    Pasted(
        "The artifact com.acme:tidelib is only in the internal Nexus, use the profile harbour",
        "[ERROR] Failed to execute goal on project ferry: Could not resolve dependencies for projec"
        "t com.acme:ferry:jar:1.0: Could not find artifact com.acme:tidelib:jar:3.2 in central (htt"
        "ps://repo.maven.apache.org/maven2) -> [Help 1]",
    ),
    Pasted(
        "ActiveRecord::PreparedStatementCacheExpired after a migration: restart puma",
        "ActiveRecord::PreparedStatementCacheExpired: ERROR:  cached plan must not change result ty"
        "pe\n"
        "  app/models/seat.rb:18:in `free'\n"
        "  app/controllers/seats_controller.rb:7:in `index'",
    ),
    Pasted(
        "Undefined array key basket_total: the session of guests has no basket",
        'PHP Warning:  Undefined array key "basket_total" in /var/www/shop/cart.php on line 88',
    ),
    Pasted(
        "NU1605 in the mobile project: pin Xamarin.Essentials",
        "error NU1605: Warning As Error: Detected package downgrade: Xamarin.Essentials from 1.7.5 "
        "to 1.7.0. Reference the package directly from the project to select a different version.",
    ),
    Pasted(
        "EXC_BAD_ACCESS in CameraPreview happens only in the simulator",
        "Thread 1: EXC_BAD_ACCESS (code=1, address=0x0)\n0  CameraPreview.draw(_:) + 44",
    ),
    Pasted(
        "Terraform's lock on state tfstate-prod is released by Mo with force-unlock",
        "Error: Error acquiring the state lock\n"
        "\n"
        "Lock Info:\n"
        "  ID:        5f3c2d1e-8a7b-4c6d-9e0f-1a2b3c4d5e6f\n"
        "  Path:      tfstate-prod/terraform.tfstate\n"
        "who can release the terraform state lock?",
    ),
    Pasted(
        "El respaldo de la clínica falla si el disco externo está lleno",
        f"```\n{LOG}\n```\n¿por qué falla el respaldo de la clínica?",
    ),
    Pasted(
        "支付网关的超时时间是三十秒\uff0c由张三维护",
        f"支付网关的超时时间是多少\uff1f\n{LOG}",
    ),
    Pasted(
        "請求書の印刷は佐藤さんが担当しています",
        f"{LOG}\n請求書の印刷は誰が担当していますか\uff1f",
    ),
    Pasted(
        "Le cache du portail se vide à minuit par la tâche vide-portail",
        f"{LOG}\n\nQuand est-ce que le cache du portail se vide ?",
    ),
    Pasted(
        "invoice_dispatch_mode must be manual for the Danish tenant",
        '{"tenant": "dk", "settings": {"invoice_dispatch_mode": "auto", "currency": "DKK"}}\nis this config right?',
    ),
    Pasted(
        "Peregrine deploys are frozen in the week before Christmas",
        f"{LOG}\n\nprepare the deploy of peregrine for next week\n\n{LOG}",
    ),
    Pasted(
        "TLS handshake with fax-gw fails because its certificate expired; use the plain port 8081",
        "* Trying 10.9.8.7:443...\n"
        "* connect to fax-gw.internal port 443\n"
        "curl: (60) SSL certificate problem: certificate has expired\n"
        "More details here: https://curl.se/docs/sslcerts.html",
    ),
    Pasted(
        "TariffWindowError is raised on purpose when two tariffs overlap",
        "TariffWindowError: overlapping windows\n  at checkWindows (tariff/windows.ts:14:11)",
    ),
    Pasted(
        "ORA-12514 on the reporting box: the listener needs the service name with .world",
        "sqlplus rep/***@REP\n"
        "ERROR:\n"
        "ORA-12514: TNS:listener does not currently know of service requested in connect\n"
        "descriptor",
    ),
    Pasted(
        "MySQL error 1205 at month end: the report of Karla holds the lock",
        "ERROR 1205 (HY000): Lock wait timeout exceeded; try restarting transaction",
    ),
    Pasted(
        "503 from the label printer API means paper is out",
        "< HTTP/1.1 503 Service Unavailable\n"
        "< Server: labelprinter/2.0\n"
        "< Content-Length: 0\n"
        "why does the label printer API say 503?",
    ),
)

OTHERS: Final = (
    "The staging database listens on port 5433",
    "The connection pool of the API has 20 connections",
    "User prefers tabs over spaces in Go",
    "The weekly review is on Thursday at ten",
    "Marketing wants the newsletter in two languages",
    "The server room is locked with a badge",
    "Sessions of the admin page expire after an hour",
    "Orders are archived after seven years",
    "We retry failed payments three times",
    "The cache of the images is cleared at night",
    "KeyError 'colour' in the catalogue means that the feed is empty",
    "NullPointerException in SeatPlanner: the hall has no rows",
    "HTTP 502 after a deploy goes away by itself",
    "ORA-00060 is a bug of the old driver",
    "E0382 in the parser: borrow the token instead",
    "Ticket KA-61 is about the pre-compaction hook",
    "Frau Brandt kümmert sich um die Rechnungen der Werft",
    "La impresora del pasillo necesita papel grueso",
    "会议室的钥匙在前台",
    "ImagePullBackOff of the crawler: the registry token expires each month",
)

CONTROLS: Final = (
    LOG,
    f"how do I fix this?\n{LOG}",
    f"what does this error mean?\n```\n{LOG}\n```",
    f"warum passiert das?\n{LOG}",
    f"¿cómo arreglo este error?\n{LOG}",
    f"这个错误怎么解决\uff1f\n{LOG}",
    CODE,
    f"explain this code\n{CODE}",
    DIFF,
    f"review this diff, please\n{DIFF}",
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/other/main.py", line 3, in <module>\n    print(row["weight"])\nKeyError: \'weight\''
    ),
    (
        'Exception in thread "main" java.lang.NullPointerException\n\tat com.example.Greeter.greet(Greeter.java:7)\n'
        "\tat com.example.Main.main(Main.java:3)"
    ),
    "error[E0599]: no method named `len` found for type `u32` in the current scope\n --> src/main.rs:3:7\n",
    "main.c:4:5: warning: implicit declaration of function 'printf' [-Wimplicit-function-declaration]",
    "src/a.ts(1,7): error TS2322: Type 'number' is not assignable to type 'string'.",
    "ORA-00942: table or view does not exist\nORA-06512: at line 1",
    'ERROR:  relation "visits" does not exist (SQLSTATE 42P01)\nLINE 1: SELECT * FROM visits;',
    '127.0.0.1 - - [27/Nov/2026:12:00:03 +0000] "GET /index.html HTTP/1.1" 200 5120 "-" "curl/8.5.0"',
    "HRESULT: 0x80070005 Access is denied.",
    "npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://registry.npmjs.org/leftpadd - Not found",
    "#9 [4/5] RUN pip install -r requirements.txt\n#9 0.912 Collecting flask==3.0.0\n#9 DONE 4.1s",
    "NAME    READY   STATUS    RESTARTS   AGE\nweb-7f9c6bd8d5-abcde   1/1   Running   0   2d",
    '{"id": 7, "user": {"name": "Ann", "email": "ann@example.org"}, "orders": [{"sku": "A1", "count": 2}]}',
    "SELECT user_id, count(*) AS n FROM orders WHERE created_at > now() - interval '7 days' GROUP BY user_id;",
    PROSE,
    f"{PROSE}\n{LOG}",
    'FROM python:3.12-slim\nWORKDIR /app\nCOPY . .\nRUN pip install .\nCMD ["python", "-m", "app"]',
    "SyntaxError: Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON\n    at JSON.parse (<anonymous>)",
    (
        "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n<summary>Marketing wants the"
        " newsletter in two languages</summary>\n</task-notification>"
    ),
    "kernel: [12345.678] usb 1-2: new high-speed USB device number 9 using xhci_hcd",
    (
        "Traceback (most recent call last):\n"
        '  File "/opt/x/run.py", line 2, in spread\n'
        "ZeroDivisionError: division by zero"
    ),
    ("  Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1"),
    (
        'ERROR:  duplicate key value violates unique constraint "uq_users_mail"\n'
        "DETAIL:  Key (mail)=(a@b.c) already exists."
    ),
    ("$ git pull\nAlready up to date.\n$ git log --oneline\n9f2c41a fix typo\n1b2c3d4 add readme"),
    ('PHP Warning:  Undefined array key "page" in /var/www/blog/index.php on line 3'),
    (
        "Error: connect ECONNREFUSED 127.0.0.1:5432\n"
        "    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1494:16)"
    ),
    ("[INFO] BUILD SUCCESS\n[INFO] Total time:  3.1 s\n[INFO] Finished at: 2026-11-27T12:00:00Z"),
    (
        "the server started and the connection to the database was opened, then the cache was clear"
        "ed and the session closed\n"
        "INFO done"
    ),
    (
        "def total(rows):\n"
        "    count = 0\n"
        "    for row in rows:\n"
        "        count += row.price\n"
        "    return count\n"
        "\n"
        "write a test for this function"
    ),
    ("<html>\n<body>\n<h1>Newsletter</h1>\n<p>two languages</p>\n</body>\n</html>"),
    (
        "Error response from daemon: pull access denied for foo/bar, repository does not exist or m"
        "ay require 'docker login'"
    ),
    ("pod/web-0 created\nservice/web created\ndeployment.apps/web configured"),
    ("ssh: connect to host example.org port 22: Connection timed out"),
    (
        "warning: LF will be replaced by CRLF in README.md.\n"
        "The file will have its original line endings in your working directory"
    ),
    ("java.lang.OutOfMemoryError: Java heap space\n\tat java.base/java.util.Arrays.copyOf(Arrays.java:3512)"),
    ("Segmentation fault (core dumped)\nwarum stürzt das Programm ab?"),
    ("ModuleNotFoundError: No module named 'requests'\ncómo lo instalo?"),
    ("Uncaught ReferenceError: foo is not defined\n    at <anonymous>:1:1"),
    ("total 48\ndrwxr-xr-x 2 root root 4096 Nov 27 12:00 bin\n-rw-r--r-- 1 root root  220 Nov 27 12:00 notes.txt"),
    ("PING example.org (93.184.216.34): 56 data bytes\n64 bytes from 93.184.216.34: icmp_seq=0 ttl=56 time=11.6 ms"),
    ('status: 500\nbody: {"error": "internal"}\nwhat now?'),
    (
        "error: failed to push some refs to 'origin'\n"
        "hint: Updates were rejected because the remote contains work that you do not have locally."
    ),
)
