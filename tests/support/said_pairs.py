"""Memories, and what was said that says the same, or something else. Source: docs/guides/hooks.md "Each prompt"."""

from __future__ import annotations

BACKUP = "The nightly backup job runs on host backup3 at 02:00"
LOPEZ = "Designer Maria Lopez earns 84000 euros a year"
SPREAD = (
    (LOPEZ, "", "Maria Lopez is our designer. She earns 84000 euros a year.", ""),
    (
        LOPEZ,
        "",
        "Fix the form.\nMaria Lopez is our designer.\nShe earns 84000 euros a year.\nThen deploy.",
        "Fix the form.\nThen deploy.",
    ),
    (LOPEZ, "", "Maria Lopez is our designer. She is happy. She earns 84000 euros a year.", "She is happy."),
    (LOPEZ, "", "Maria Lopez, the designer; she earns 84,000 euros a year. So 84000 it is.", ""),
    (LOPEZ, "what does our designer Maria Lopez earn a year?", "It is 84000 euros. The form works.", "The form works."),
    (LOPEZ, "Maria Lopez is our designer.", "She earns 84000 euros a year, and the form works.", ""),
    (
        "The acquisition's code name is Falcon, closing on March 3",
        "",
        "The acquisition has a code name. It is Falcon, closing on March 3. Update the slides.",
        "Update the slides.",
    ),
    (
        "The client Brightwater will be bankrupt in June",
        "",
        "Our client is Brightwater.\nThey will be bankrupt in June.\nSend the invoice upfront.",
        "Send the invoice upfront.",
    ),
    (
        "Layoffs in the platform team: announced on 12 December, 14 people",
        "",
        "The layoffs hit the platform team\n- announced on 12 December\n- 14 people\n\nNow run the tests",
        "Now run the tests",
    ),
    (
        "Contractor Tom gets paid 950 euros a day",
        "what do we pay Tom?",
        "Tom is a contractor; we pay him 950 euros a day.",
        "",
    ),
    (
        "The staging database runs on host osprey4 and listens on port 5433",
        "",
        "Staging database:\n- host osprey4\n- port 5433\n- the linter is green",
        "- the linter is green",
    ),
    (
        "Karen Holt leaves the finance team in spring and moves to Oslo",
        "",
        "Karen Holt leaves in spring. She is in the finance team. She moves to Oslo. Book the room.",
        "Book the room.",
    ),
    (
        "Der Gehaltswunsch von Jana Petersen ist 71.000 Euro im Jahr",
        "",
        "Jana Petersen war gestern da. Ihr Gehaltswunsch ist 71.000 Euro im Jahr. Mach die Tabelle fertig.",
        "Mach die Tabelle fertig.",
    ),
    (
        "Der Tresor im Lager hat den Code 4711 seit Montag",
        "",
        "Im Lager steht der Tresor.\nSeit Montag hat er den Code 4711.\nDie Tests sind grün.",
        "Die Tests sind grün.",
    ),
    (
        "Der Kunde Brandt kündigt zum Quartalsende den Wartungsvertrag",
        "",
        "Es geht um den Kunden Brandt. Der Kunde kündigt den Wartungsvertrag zum Quartalsende.",
        "Es geht um den Kunden Brandt.",
    ),
    (
        "Das Projekt Seeadler wird im Herbst an Nordwind verkauft",
        "wie heißt das Projekt, und an wen wird es verkauft?",
        "Es ist Seeadler. Im Herbst geht es an Nordwind. Die Liste ist sortiert.",
        "Die Liste ist sortiert.",
    ),
    (
        "Le salaire de Claire Dubois est de 52 000 euros par an",
        "",
        "Claire Dubois travaille ici. Son salaire est de 52 000 euros par an. Corrige le formulaire.",
        "Corrige le formulaire.",
    ),
    (
        "Le coffre de l'atelier a le code 9182 depuis lundi",
        "",
        "Le coffre est dans l'atelier.\nDepuis lundi son code est 9182.\nLance les tests.",
        "Lance les tests.",
    ),
    (
        "Le client Moreau quitte le contrat d'entretien en juin",
        "",
        "Il s'agit du client Moreau. Il quitte le contrat d'entretien en juin. La page marche.",
        "La page marche.",
    ),
    (
        "El sueldo de Lucía Ortega es de 43.000 euros al año",
        "",
        "Lucía Ortega trabaja aquí. Su sueldo es de 43.000 euros al año. Arregla el formulario.",
        "Arregla el formulario.",
    ),
    (
        "La caja fuerte del taller tiene el código 7345 desde el lunes",
        "",
        "La caja fuerte está en el taller.\nDesde el lunes su código es 7345.\nLas pruebas pasan.",
        "Las pruebas pasan.",
    ),
    (
        "El cliente Robles deja el contrato de mantenimiento en junio",
        "",
        "Es sobre el cliente Robles. Deja el contrato de mantenimiento en junio. La página funciona.",
        "La página funciona.",
    ),
    (
        "El proyecto Halcón se vende a Nordwind en otoño por 3 millones",
        "¿cómo se llama el proyecto que se vende?",
        "Es Halcón.\nSe vende a Nordwind en otoño por 3 millones.\nLa lista está ordenada.",
        "La lista está ordenada.",
    ),
)
"""A forgotten memory, what was said before, a text, and what is left of it."""
NOT_SPREAD = (
    (LOPEZ, "Maria Lopez is our designer. She paints the fence."),
    (LOPEZ, "Maria Lopez is our designer. She earns 91000 euros a year."),
    (LOPEZ, "Pedro Ruiz is our designer. He earns 84000 euros a year."),
    (LOPEZ, "The form has a field for euros. 84000 rows were read this year."),
    (LOPEZ, "Ask the designer. The year is over.\nWrite the invoice in euros."),
    (BACKUP, "The nightly job failed. The host backup3 was away. It starts again at 03:00."),
    (BACKUP, "The nightly restore test runs. Its host is backup7. It starts at 02:00."),
    (BACKUP, "Move the backup. The host is new. The job waits."),
    ("CI runs the parser tests in Docker", "The parser is done. Docker is slow. Lint it. Check the docs. Then CI."),
    ("The staging database listens on port 5433", "Staging is slow. The database has an index. The port is 5434."),
    ("The staging database listens on port 5433", "The server has 5433 rows. Staging is away."),
    (
        "The acquisition's code name is Falcon, closing on March 3",
        "The acquisition has a code name. It closes on April 3.",
    ),
    ("The client Brightwater will be bankrupt in June", "Our client is Brightwater. They will pay in June."),
    ("Contractor Tom gets paid 950 euros a day", "Tom is a contractor. We pay him 800 euros a day."),
    ("Contractor Tom gets paid 950 euros a day", "Ann is a contractor. We pay her 950 euros a day."),
    ("Der Tresor im Lager hat den Code 4711 seit Montag", "Im Lager steht der Tresor. Der Code ist 4712."),
    ("Der Tresor im Lager hat den Code 4711 seit Montag", "Im Lager steht ein Regal. Der Code 4711 ist ein Duft."),
    ("Le coffre de l'atelier a le code 9182 depuis lundi", "Le coffre est dans l'atelier. Son code est 9183."),
    ("Le salaire de Claire Dubois est de 52 000 euros par an", "Claire Dubois travaille ici. La page est prête."),
    ("El sueldo de Lucía Ortega es de 43.000 euros al año", "Lucía Ortega trabaja aquí. Su sueldo es de 44.000 euros."),
    ("La caja fuerte del taller tiene el código 7345", "La caja fuerte está en el taller. El código es 7346."),
)
"""Memories, and texts with words of them that say something else."""
SAME = (
    ("I'm allergic to peanuts, keep that in mind for the recipe app", "User is allergic to peanuts"),
    ("my blood type is AB negative", "User's blood type is AB negative"),
    ("my wife is called Clara, put her into the demo data", "The user's wife is named Clara"),
    ("my son has asthma, so no smoke effects in the game", "User\u2019s son has asthma"),
    ("I vote for the Greens, use it in the sample survey", "User votes for the Greens"),
    ("I've a peanut allergy", "User has a peanut allergy"),
    ("we'll sell the company to Initech, and I'm the only one who knows", "User will sell the company to Initech"),
    ("You live in Berlin, as far as I know.", "User lives in Berlin"),
    ("My salary is 92,000 USD, put it in the calculator", "User's salary is 92000 USD"),
    ("I earn $120k a year, use it as an example", "User earns 120,000 dollars a year ($120,000)"),
    ("I was born on March 4, 1990", "User was born on 1990-03-04"),
    ("I was born on 4 March 1990, as the form shows", "User was born on 1990-03-04"),
    (
        "the layoffs of the platform team will be announced on December 12",
        "Layoffs of platform team announced 2026-12-12",
    ),
    ("my yoga class starts at 2:30 pm", "User's yoga class starts at 14:30"),
    ("my yoga class starts at 14:30", "User's yoga class starts at 2:30pm"),
    ("My therapist is Dr. Hahn, I see her on Tuesdays at 5pm", "User sees therapist Dr. Hahn on Tuesdays at 17:00"),
    ("Ich wohne in der Lindenstraße 5", "Der Nutzer wohnt in der Lindenstraße 5"),
    ("Ich bin gegen Nüsse allergisch", "Nutzer ist gegen Nüsse allergisch"),
    ("Mein Geburtstag ist der 4. März 1990", "Geburtstag des Nutzers: 04.03.1990"),
    ("Ich verdiene 71.000 Euro", "Der Nutzer verdient 71000 Euro"),
    ("Ich lebe in Kassel", "Der Benutzer lebt in Kassel"),
    ("J'habite à Lyon depuis mai", "L'utilisateur habite à Lyon depuis mai"),
    ("Ma femme s'appelle Claire", "La femme de l'utilisateur s'appelle Claire"),
    ("Je gagne 52 000 euros par an", "L'utilisateur gagne 52000 euros par an"),
    ("Mon cours de yoga commence à 14h30", "Le cours de yoga de l'utilisateur commence à 14:30"),
    ("Je suis né le 4 mars 1990", "L'utilisateur est né le 1990-03-04"),
    ("Vivo en Madrid con mi mujer", "El usuario vive en Madrid"),
    ("Gano 43.000 euros al año", "El usuario gana 43000 euros al año"),
    ("Nací el 4 de marzo de 1990", "El usuario nació el 1990-03-04 (nací)"),
    ("Soy alérgico a las nueces", "El usuario es alérgico a las nueces"),
)
"""What was said, and a memory of it in the words of an agent."""
OTHER = (
    ("Mia is allergic to peanuts", "User is allergic to peanuts"),
    ("the payment service listens on port 8080", "User service runs on port 8080"),
    ("the users table has 4 columns", "The orders list has 4 rows"),
    ("I'm allergic to cats", "User is allergic to peanuts"),
    ("my blood type is A positive", "User's blood type is AB negative"),
    ("my sister is called Clara", "User's wife is named Clara Maria Holt"),
    ("I live in Hamburg", "User lives in Berlin"),
    ("Anna's wife is called Clara", "User's wife is named Clara"),
    ("my salary is 92,500 USD", "User's salary is 92000 USD"),
    ("my salary is 92 USD an hour", "User's salary is 92000 USD"),
    ("I was born on March 5, 1990", "User was born on 1990-03-04"),
    ("I was born on March 4, 1991", "User was born on 1990-03-04"),
    ("I was born on April 4, 1990", "User was born on 1990-03-04"),
    (
        "the layoffs of the platform team will be announced on November 12",
        "Layoffs of platform team announced 2026-12-12",
    ),
    ("my yoga class starts at 2:30 am", "User's yoga class starts at 14:30"),
    ("my yoga class starts at 3:30 pm", "User's yoga class starts at 14:30"),
    ("Ich wohne in der Lindenstraße 7", "Der Nutzer wohnt in der Lindenstraße 5"),
    ("Ich arbeite in Kassel", "Der Benutzer lebt in Kassel"),
    ("J'habite à Lille", "L'utilisateur habite à Lyon"),
    ("Je gagne 5 200 euros par an", "L'utilisateur gagne 52000 euros par an"),
    ("Vivo en Málaga", "El usuario vive en Madrid"),
    ("Gano 44.000 euros al año", "El usuario gana 43000 euros al año"),
    ("the team prefers tabs", "User prefers dark mode in screenshots"),
)
"""What was said, and a memory of something else: of another person, with another number, day or time."""
FULLER = (
    (
        "Maria earns 84,000 euros, use that for the salary test",
        "Maria Keller, the designer at Ferry, earns 84,000 euros per year",
    ),
    (
        "the margin for Hansen is 34 percent, put that in the calculator",
        "Customer Hansen GmbH has a profit margin of 34 percent in the price calculator",
    ),
    (
        "the acquisition by Globex closes on March 3",
        "The acquisition of Ferry by Globex Corporation is expected to close on 2027-03-03",
    ),
    (
        "my bank is Sparkasse Potsdam, IBAN ends with 3000",
        "User's bank account is at Sparkasse Potsdam; the IBAN ends with 3000",
    ),
    (
        "we are being acquired by Globex in March, this is confidential, rename the tenant later",
        "Confidential: the company is being acquired by Globex in March 2027",
    ),
    (
        "Okay - the rent of Studio Nord is 2,150 euros",
        "Studio Nord pays a monthly rent of 2150 euros to Hagen Immobilien",
    ),
    ("Jana Petersen weighs 71 kilos (for the BMI form)", "Patient Jana Petersen from Kassel weighs 71 kilos since May"),
    (
        "so: the Brightwater invoice is 18,400 dollars",
        "Brightwater Ltd. still owes the invoice of 18,400 dollars from July",
    ),
    ("remember that the code name is Falcon", "The code name of the acquisition of Ferry is Falcon"),
    (
        "Lena's flight LH 4711 leaves at 6:40, book the taxi",
        "Lena Vogt's flight LH 4711 to Oslo leaves Frankfurt at 06:40",
    ),
    (
        "the Zander account has 7,734 euros left, pay nothing",
        "The Zander shipyard's account at Nordbank has only 7,734 euros left",
    ),
    ("Quentin Maro visits on May 12", "The auditor Quentin Maro from Deloitte visits the office on May 12"),
    (
        "Tamsin's licence lapses on 3 June, plan the route",
        "The skipper's licence of Tamsin Roe lapses on June 3 for the northern route",
    ),
    (
        "das Gehalt von Petersen ist 71.000 Euro, bitte eintragen",
        "Das Gehalt von Jana Petersen im Vertrieb ist 71.000 Euro im Jahr",
    ),
    (
        "die Kündigung von Brandt kommt am 3. März, noch geheim",
        "Die Kündigung von Jonas Brandt aus der Technik kommt am 3. März",
    ),
    ("le loyer de Studio Nord est de 2150 euros, note-le", "Le loyer mensuel de Studio Nord à Lyon est de 2150 euros"),
    (
        "el alquiler de Casa Lirio es de 900 euros, apúntalo",
        "El alquiler mensual de Casa Lirio en Madrid es de 900 euros",
    ),
    ("Noted: Otto Falk has 12 percent of the shares", "Otto Falk from Hamburg has 12 percent of the shares of Ferry"),
    (
        "Ottokar's payroll is 5210 euros, the form is fixed",
        "The monthly payroll of Ottokar Brandt in logistics is 5210 euros",
    ),
    (
        "the Hansen lawsuit costs 40k, keep it quiet",
        "The lawsuit against Hansen GmbH costs about 40,000 euros in total",
    ),
)
"""What was said, and a memory that tells more than that."""
NOT_FULLER = (
    ("the access log is kept for 90 days", "The audit log is kept for 90 days on the host Osprey"),
    ("Maria earns 74,000 euros, use that", "Maria Keller, the designer at Ferry, earns 84,000 euros per year"),
    ("Paul earns 84,000 euros", "Maria Keller, the designer at Ferry, earns 84,000 euros per year"),
    ("Maria Keller is the designer at Ferry", "Maria Keller, the designer at Ferry, earns 84,000 euros per year"),
    ("She earns 84,000 euros per year", "Maria Keller, the designer at Ferry, earns 84,000 euros per year"),
    ("the margin for Hansen is 43 percent", "Customer Hansen GmbH has a profit margin of 34 percent in the calculator"),
    ("the margin for Globex is 34 percent", "Customer Hansen GmbH has a profit margin of 34 percent in the calculator"),
    ("the calculator has a profit margin", "Customer Hansen GmbH has a profit margin of 34 percent in the calculator"),
    (
        "the acquisition by Globex is off",
        "The acquisition of Ferry by Globex Corporation is expected to close on 2027-03-03",
    ),
    ("Ferry closes on March 4", "The acquisition of Ferry by Globex Corporation is expected to close on 2027-03-03"),
    ("the bank is Sparkasse Potsdam", "User's bank account is at Sparkasse Potsdam; the IBAN ends with 3000"),
    ("the staging API runs on port 8080", "The production API of Ferry runs on port 8080 behind Caddy"),
    ("production runs Postgres", "The production database of Ferry runs Postgres 16 on port 5433"),
    ("Studio Nord has 3 rooms", "Studio Nord pays a monthly rent of 2150 euros to Hagen Immobilien"),
    ("the rent is 2150 euros", "Studio Nord pays a monthly rent of 2150 euros to Hagen Immobilien"),
    ("Jana Petersen weighs the options", "Patient Jana Petersen from Kassel weighs 71 kilos since May"),
    ("Jana Petersen from Kassel since May", "Patient Jana Petersen from Kassel weighs 71 kilos since May"),
    ("the Brightwater invoice is paid", "Brightwater Ltd. still owes the invoice of 18,400 dollars from July"),
    ("das Gehalt von Brandt ist 71.000 Euro", "Das Gehalt von Jana Petersen im Vertrieb ist 71.000 Euro im Jahr"),
    ("le loyer de Studio Sud est de 2150 euros", "Le loyer mensuel de Studio Nord à Lyon est de 2150 euros"),
    ("Quentin Maro visits the office", "The auditor Quentin Maro from Deloitte visits the office on May 12"),
    ("tests run on Mondays", "The nightly tests of the repository Ferry run on Mondays and Thursdays at 02:00"),
)
"""What was said, and a memory that tells more about something else, or to which it belongs without its figure."""
OTHERWISE = (
    (
        "We're going to fire Tom at the end of the month, take him off the on-call schedule",
        "Tom will be dismissed at the end of November 2026; remove him from on-call",
    ),
    (
        "the customer Hansen hasn't paid for three months, we'll sue them",
        "Customer Hansen is three months behind on payments; legal action is planned",
    ),
    ("I took out a loan of 40k for the company", "The user has a private loan of 40,000 euros for the company"),
    (
        "Paul quit yesterday, remove his access to the repo",
        "Paul Richter left the company on 28 November 2026; his repository access was removed",
    ),
    ("we pay AWS about 12,000 dollars a month", "Monthly AWS costs of the company are about 12,000 USD"),
    (
        "Jonas has burnout and is out till January",
        "Jonas Brandt is on sick leave because of burnout until January 2027",
    ),
    (
        "the investor call with Lumen Capital is on Friday at 4",
        "Investor call with Lumen Capital on Friday, 4 December 2026 at 4 pm",
    ),
    (
        "Ludmilla wants to leave, look for a replacement",
        "Ludmilla Sever is going to resign and a replacement is sought",
    ),
    ("der Kunde Zander zahlt nicht mehr", "Zander ist zahlungsunfähig; der Kunde wird verklagt"),
    (
        "the Beluga deal is dead, stop the migration",
        "The contract with Beluga fell through and the migration was stopped",
    ),
)
"""What was said, and a memory that may be the same in other words."""
