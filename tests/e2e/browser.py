#!/usr/bin/python3
"""The web page in a real browser (Debian's chromium, headless): what a user sees of jobs that run, fail and wait, and when the coordinator comes back.

    MUSTER=build/release/muster tests/e2e/browser.py [TEST…]
    MUSTER=build/release/muster tests/e2e/browser.py screenshot      writes docs/web.png and docs/web-phone.png
"""
import json
import pathlib
import os
import sys
import unittest
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import ROOT, Cluster, Witness, World, eventually, finished, matches, sh_job, untaint  # noqa: E402

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.service import Service
except ImportError:
    sys.exit("browser: needs python3-selenium, chromium and chromium-driver: ./dev test installs them")
DRIVER = "/usr/bin/chromedriver"
if not os.path.exists(DRIVER):
    sys.exit(f"browser: there is no {DRIVER}: ./dev test installs chromium and chromium-driver")

EVIL = '<img src=x onerror="window.hacked=1">'
UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'


def new_browser(width=1280, height=1000, insecure=False):
    options = webdriver.ChromeOptions()
    options.add_argument("--headless=new")
    options.add_argument(f"--window-size={width},{height}")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument("--no-first-run")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    if insecure:
        options.add_argument("--ignore-certificate-errors")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    browser.set_script_timeout(60)
    return browser


def mixed(witness, name="mixed"):
    """8 indexes: 0 succeeds, 1 backs off and 2 fails for good. With three slots, 3 to 5 run, 6 waits for a slot and 7 for parallelism."""
    work = 'case "$i" in 0) code=0;; 1) code=1;; 2) code=42;; *) ' + UNTIL_GO + ";; esac"
    return witness.job(name, work, 8, parallelism=5, backoffLimitPerIndex=1, podFailurePolicy={"rules": [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]})


MIXED = ["succeeded", "backoff", "failed", "running", "running", "running", "pending", "not created"]


class Page(World):
    """One browser for all tests; each opens its own cluster's page and must leave no errors in the console."""

    @classmethod
    def setUpClass(cls):
        cls.browser = new_browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()

    def open(self, cluster, job=None):
        self.browser.get("about:blank")
        self.browser.get_log("browser")
        self.browser.get_log("performance")
        self.origin = f"http://{cluster.api_addr}"
        self.browser.get(self.origin + "/" + (f"#/default/{job}" if job else ""))
        self.live()

    def js(self, expression, *args):
        return self.browser.execute_script("return " + expression, *args)

    def until(self, expression, what, timeout=20):
        return eventually(lambda: self.js(expression), what, timeout)

    def live(self, timeout=20):
        self.until("window.musterState && musterState.connection === 'live' && musterState.feeds.every(f => f.state === 'live')",
                   "the page is live", timeout)

    def text(self, css):
        return self.browser.find_element(By.CSS_SELECTOR, css).text

    def see(self, css, part, timeout=20):
        """Waits until the visible text of the element contains `part`."""
        eventually(lambda: part in self.text(css), f"{css} shows {part!r}", timeout)

    def states(self):
        """The state of each index, once the map has been drawn."""
        return self.js("musterState.map && musterState.map.layout && Array.from({length: musterState.map.completions}, (_, i) => musterState.stateOf(i))")

    def clean(self, lost=False, deleted=None):
        """Checks that the console has no errors and no request went to another host. `lost`: the coordinator was down meanwhile.
        `deleted`: this job was deleted meanwhile, so a request for its indexes may have failed."""
        wrong = [e["message"] for e in self.browser.get_log("browser") if e["level"] == "SEVERE"
                 and not (lost and e.get("source") == "network")
                 and not (deleted and f"/jobs/{deleted}/" in e["message"] and "status of 404" in e["message"])]
        self.assertEqual(wrong, [])
        asked = set()
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urllib.parse.urlsplit(message["params"]["request"]["url"])
                if url.scheme not in ("data", "about"):
                    asked.add(f"{url.scheme}://{url.netloc}")
                self.assertEqual(message["params"]["request"]["method"], "GET", "the page only reads")
        self.assertEqual(asked, {self.origin})

    # ---- what a user sees

    def test_cancelled_indexes_are_not_failed(self):
        cluster = self.cluster(agents=1, slots=3, base="10m", top="10m")
        witness = self.witness(cluster)
        self.submit(cluster, mixed(witness))
        self.open(cluster, "mixed")
        eventually(lambda: self.states() == MIXED, "each index in its state")
        code, answer = cluster.api.call("PUT", "/apis/muster.dev/v1/namespaces/default/jobs/mixed/cancel", {"indexes": "3,7"})
        self.assertEqual(code, 200, answer)
        eventually(lambda: self.states() == [*MIXED[:3], "cancelled", "running", "running", "running", "cancelled"], "two are cancelled")
        self.see("#set-cancelled", "3,7")
        self.assertEqual(self.text("#set-failed"), "2")
        label = "document.querySelector('#progress .bar').getAttribute('aria-label')"
        self.until(f"{label} === '1 of 8 succeeded, 1 index failed, 2 indexes cancelled'", "the bar says it")
        self.assertEqual(sorted(row[0] for row in self.rows("#failed-pods")), ["1", "2"])
        (witness.folder / "go").touch()
        self.clean()

    def test_cells_take_their_states_live(self):
        cluster = self.cluster(agents=1, slots=3, base="10m", top="10m")
        witness = self.witness(cluster)
        self.open(cluster)
        self.see("#jobs-table", "no job")
        self.see("#nodes-table", "node-0")
        self.see("#cluster", "1 of 1 node ready")
        self.submit(cluster, mixed(witness))
        self.see("#jobs-table", "mixed")
        self.until("document.title.startsWith('1 running, 0 failed')", "the title counts it")
        self.browser.find_element(By.LINK_TEXT, "mixed").click()
        self.see("#detail-title", "default/mixed")
        eventually(lambda: self.states() == MIXED, "each index in its state")
        self.colours_are(MIXED)
        self.see("#jobs-table", "1")
        for css, text in (("#set-failed", "2"), ("#set-backoff", "1"), ("#set-running", "3-5"), ("#set-pending", "6"), ("#set-succeeded", "0")):
            self.assertEqual(self.text(css), text, css)
        self.assertEqual(self.text("#legend").splitlines(),
                         ["not created 1", "pending 1", "running 3", "backoff 1", "succeeded 1", "failed 1", "cancelled 0"])
        label = self.browser.find_element(By.ID, "map").get_attribute("aria-label")
        self.assertIn("1 failed", label)
        self.assertIn("3 running", label)
        row = self.job_row("mixed")
        self.assertEqual(row[2:8], ["Running", "1 / 8", "1", "3", "1", "1"],
                         "status, progress, failed (index 1 counts with its next pod), running, pending, backoff")
        # One more pod may wait on the node for the next free slot.
        eventually(lambda: self.rows("#nodes-table")[0][1:4] in (["Ready", "3", "3"], ["Ready", "3", "3 + 1 waiting"]),
                   "state, slots and pods of the node")
        failed = [("1", "exit 1", "node-0"), ("2", "exit 42", "node-0")]
        eventually(lambda: sorted((row[0], row[2], row[3]) for row in self.rows("#failed-pods")) == failed, "the failed pods")
        self.see("#job-events", "SuccessfulCreate")
        # The page updates without a reload.
        (witness.folder / "go").touch()
        after = ["succeeded", "backoff", "failed"] + ["succeeded"] * 5
        eventually(lambda: self.states() == after, "the others succeed")
        self.colours_are(after)
        self.assertEqual(self.text("#set-succeeded"), "0,3-7")
        self.clean()

    def colours_are(self, states):
        """Compares the drawn map: one pixel in the middle of each cell."""
        seen = eventually(lambda: (found := self.js("""(() => {
            const context = document.getElementById('map').getContext('2d'), palette = musterState.palette();
            const name = ([r, g, b]) => '#' + [r, g, b].map(c => c.toString(16).padStart(2, '0')).join('');
            const of = Object.fromEntries(Object.entries(palette).map(([state, colour]) => [colour, state]));
            return Array.from({length: musterState.map.completions}, (_, i) =>
                of[name(context.getImageData(...musterState.pixelOf(i), 1, 1).data)]);
        })()""")) == states and found, f"a picture of {states}")
        self.assertEqual(seen, states)

    def rows(self, css):
        return self.js("[...document.querySelectorAll(arguments[0] + ' tbody tr')].filter(r => r.cells.length > 1)"
                       ".map(r => [...r.cells].map(c => c.textContent))", css)

    def job_row(self, name):
        return next(row for row in self.rows("#jobs-table") if row[0] == name)

    def test_an_index_is_chosen_by_keyboard_and_pointer(self):
        cluster = self.cluster(agents=1, slots=3, base="10m", top="10m")
        witness = self.witness(cluster)
        self.submit(cluster, mixed(witness))
        self.open(cluster)
        self.see("#jobs-table", "mixed")
        # From here on, only the keyboard is used.
        self.browser.find_element(By.ID, "filter").send_keys("mix")
        link = self.browser.find_element(By.LINK_TEXT, "mixed")
        for _ in range(10):
            if self.browser.switch_to.active_element == link:
                break
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
        self.browser.switch_to.active_element.send_keys(Keys.ENTER)
        eventually(lambda: self.states() == MIXED, "each index in its state")
        self.assertEqual(self.js("document.activeElement.id"), "detail-title", "the focus follows")
        canvas = self.browser.find_element(By.ID, "map")
        canvas.send_keys("f")
        self.assertEqual(self.text("#cell"), "index 2: failed")
        pods = eventually(lambda: self.rows("#pods"), "its pods")
        self.assertEqual([pod[1:4] for pod in pods], [["Failed", "exit 42", "node-0"]])
        canvas.send_keys("b")
        self.assertEqual(self.text("#cell"), "index 1: backoff")
        canvas.send_keys("r")
        self.assertEqual(self.text("#cell"), "index 3: running")
        canvas.send_keys(Keys.HOME)
        self.assertEqual(self.text("#cell"), "index 0: succeeded")
        canvas.send_keys(Keys.END)
        self.assertEqual(self.text("#cell"), "index 7: not created")
        canvas.send_keys(Keys.ARROW_LEFT)
        self.assertEqual(self.text("#cell"), "index 6: pending")
        self.see("#pods", "it has not started")
        field = self.browser.find_element(By.ID, "index")
        field.clear()
        field.send_keys("3", Keys.ENTER)
        self.see("#cell", "index 3: running")
        for part in ("1 pod is waiting for a slot", "1 index is backing off", "failed indexes: 2"):
            self.see("#why", part)  # shown above the map, which then stays in place
        # The pointer hovers over index 6, without a click.
        x, y = self.js("""(() => { const [x, y] = musterState.pixelOf(6), box = document.getElementById('map').getBoundingClientRect();
            return [x / devicePixelRatio - box.width / 2, y / devicePixelRatio - box.height / 2]; })()""")
        ActionChains(self.browser).move_to_element_with_offset(canvas, round(x), round(y)).perform()
        self.see("#cell", "index 6: pending")
        ActionChains(self.browser).send_keys(Keys.ESCAPE).perform()
        self.until("document.getElementById('detail').hidden", "Escape closes the job")
        (witness.folder / "go").touch()
        self.clean()

    def test_page_follows_a_job_that_is_scaled_deleted_and_recreated(self):
        cluster = self.cluster(agents=1, slots=8)
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("turns", UNTIL_GO, 2))
        self.open(cluster, "turns")
        eventually(lambda: self.states() == ["running"] * 2, "both run")
        code, answer = cluster.api.patch("turns", {"spec": {"completions": 5, "parallelism": 5}})
        self.assertEqual(code, 200, answer)
        eventually(lambda: self.states() == ["running"] * 5, "five of them")
        cluster.api.delete("turns")
        self.see("#detail-status", "deleted")
        self.see("#jobs-table", "no job")
        # A new job of the same name, without indexes.
        self.submit(cluster, sh_job("turns", "exit 0", 3, completionMode="NonIndexed", parallelism=1))
        self.see("#facts", "3 of 3")
        self.assertFalse(self.browser.find_element(By.ID, "map").is_displayed(), "no index, no map")
        self.see("#job-events", "Completed")
        self.browser.find_element(By.ID, "close").click()
        self.see("#events", "since this page was opened")
        self.assertIn("default", self.text("#jobs-table"))
        self.assertFalse(self.browser.find_element(By.ID, "detail").is_displayed())
        self.browser.back()
        self.see("#detail-title", "default/turns")
        (witness.folder / "go").touch()
        self.clean(deleted="turns")

    def test_page_reconnects_to_a_restarted_coordinator(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("long", UNTIL_GO, 3))
        self.open(cluster, "long")
        eventually(lambda: self.states() == ["running"] * 3, "all run")
        relists = self.js("musterState.relists")
        cluster.kill_coordinator()
        self.see("#connection", "reconnecting")
        self.until("document.title.includes('reconnecting')", "the title says so")
        self.assertEqual(self.states(), ["running"] * 3, "what was known stays there")
        cluster.start_coordinator()
        self.assertEqual(f"http://{cluster.api_addr}", self.origin, "on the same port")
        self.live(30)
        self.assertGreater(self.js("musterState.relists"), relists, "what was watched is too old, so it is listed again")
        self.see("#connection", "live")
        cluster.wait_nodes()
        self.submit(cluster, witness.job("after", "code=0", 2))
        self.see("#jobs-table", "after")
        (witness.folder / "go").touch()
        eventually(lambda: self.states() == ["succeeded"] * 3, "the running pods end, and are seen to")
        self.see("#detail-status", "Complete")
        self.clean(lost=True)

    def test_hostile_text_is_escaped(self):
        cluster = self.cluster(agents=1, slots=2)
        job = sh_job("hostile", "exit 0", 1, backoffLimit=0)
        job["metadata"]["annotations"] = {"note": EVIL}
        # The message of a pod that cannot be started names its command.
        job["spec"]["template"]["spec"]["containers"][0]["command"] = ["/no/such/" + EVIL]
        self.submit(cluster, job)
        managed = sh_job("managed", "exit 0", 1, managedBy="example.com/other")
        self.submit(cluster, managed)
        status = {"conditions": [{"type": "Suspended", "status": "True", "reason": "Evil", "message": EVIL}]}
        code, answer = cluster.api.patch("managed", {"status": status}, "/status")
        self.assertEqual(code, 200, answer)
        cluster.wait("hostile", finished)
        self.open(cluster, "hostile")
        self.see("#failed-pods", EVIL)
        self.browser.find_element(By.CSS_SELECTOR, "#manifest summary").click()
        self.see("#manifest pre", "onerror")
        self.browser.get(self.origin + "/#/default/managed")
        self.see("#detail-title", "managed")
        self.see("#conditions", EVIL)
        self.see("#detail-message", EVIL)
        self.browser.get(self.origin + "/#/default/" + urllib.parse.quote(EVIL, safe=""))
        self.see("#detail-title", EVIL)
        self.see("#detail-status", "not found")
        self.assertIsNone(self.js("window.hacked"))
        self.assertEqual(self.js("document.images.length"), 0)
        wrong = [e["message"] for e in self.browser.get_log("browser") if e["level"] == "SEVERE" and "404" not in e["message"]]
        self.assertEqual(wrong, [])
        self.clean()

    def test_a_hidden_page_lets_its_connections_go(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("seen", UNTIL_GO, 2))
        self.open(cluster, "seen")
        eventually(lambda: self.states() == ["running"] * 2, "both run")
        hide = "void (Object.defineProperty(document, 'hidden', {value: %s, configurable: true}), document.dispatchEvent(new Event('visibilitychange')))"
        self.js(hide % "true")
        self.assertEqual([feed["path"] for feed in self.js("musterState.feeds")], ["/apis/batch/v1/jobs"])
        cluster.start_agent("late")
        (witness.folder / "go").touch()
        cluster.wait("seen")
        self.until("document.title.startsWith('0 running')", "the title is kept up to date")
        self.js(hide % "false")
        self.live()
        self.see("#nodes-table", "late")
        eventually(lambda: self.states() == ["succeeded"] * 2, "the map has caught up")
        # The browser keeps old pages for its Back button, but must not keep their connections: it has only six.
        for _ in range(3):
            self.browser.get("about:blank")
            self.browser.get(self.origin + "/#/default/seen")
            self.live()
            self.see("#why-text", "Complete")
        self.browser.get("about:blank")
        self.browser.back()
        self.live()
        self.assertEqual(self.js("performance.getEntriesByType('navigation')[0].type"), "reload", "it begins anew")
        self.clean()

    def test_a_job_shows_what_it_runs_and_leaves_nothing_behind(self):
        cluster = self.cluster(agents=1, slots=2)
        witness = self.witness(cluster)
        job = witness.job("what", UNTIL_GO, 4, backoffLimitPerIndex=0)
        job["spec"]["template"]["spec"]["containers"][0]["workingDir"] = str(witness.folder)
        self.submit(cluster, job)
        self.open(cluster, "what")
        self.until("document.querySelector('#facts [data-fact=command]') !== null", "the facts")
        self.see("#facts [data-fact=command]", "sh -c '")
        self.see("#facts [data-fact=directory]", str(witness.folder))
        self.assertIn("sh -c '", self.job_row("what")[-1])
        buttons = "[...document.querySelectorAll('#right button, #right input')].filter(b => b.checkVisibility()).length"
        self.muster("delete", "job/what", cluster=cluster)
        self.see("#detail-status", "deleted")
        self.until(buttons + " === 0", "nothing is left to press")
        self.clean(deleted="what")
        self.open(cluster, "never")
        self.see("#detail-status", "not found")
        self.until(buttons + " === 0", "nor is there for a job that never was")
        self.assertNotIn("none", self.text("#right"))
        (witness.folder / "go").touch()

    def test_a_link_logs_in_from_another_machine(self):
        cluster = self.cluster(agents=1, slots=2, extra=("--api-tls", "127.0.0.1:0"))
        self.submit(cluster, sh_job("far", "exit 0", 1))
        link = self.muster("web", cluster=cluster).stdout.strip()
        self.assertIn("/#login=", link)
        browser = new_browser(insecure=True)
        try:
            seen = lambda css: browser.find_element(By.CSS_SELECTOR, css).text  # noqa: E731
            browser.get(link.split("#")[0])
            eventually(lambda: "muster web" in seen("#connection"), "it says how to log in")
            browser.get("about:blank")
            browser.get(link)
            eventually(lambda: "far" in seen("#jobs-table"), "the jobs")
            self.assertNotIn("login", browser.current_url)
            browser.refresh()
            eventually(lambda: "far" in seen("#jobs-table"), "the tab stays logged in")
            browser.switch_to.new_window("tab")
            browser.get(link)
            eventually(lambda: "has been used" in seen("#connection"), "the link works once")
        finally:
            browser.quit()

    # ---- what has failed, and why

    def test_failed_jobs_are_listed_first_and_counts_act_as_filters(self):
        cluster = self.cluster(agents=1, slots=4)
        for name, command in (("broken", "exit 3"), ("done", "exit 0")):
            self.submit(cluster, sh_job(name, command, 1, backoffLimit=0))
            cluster.wait(name, finished)
        for name in ("idle", "idler"):
            self.submit(cluster, sh_job(name, "exit 0", 1, suspend=True))
        self.open(cluster)
        names = lambda: [row[0] for row in self.rows("#jobs-table")]  # noqa: E731
        eventually(lambda: len(found := names()) == 4 and found[0] == "broken" and found[3] == "done", "the failed one, what is not over, the complete one")
        self.assertEqual(self.text("#totals").split("\n"), ["4 jobs", "1 failed", "0 running", "2 suspended", "1 complete"])
        self.assertIn("Failed: BackoffLimitExceeded", self.job_row("broken")[2])
        colour = "getComputedStyle([...document.querySelectorAll('#jobs-table tbody tr')].find(r => r.cells[0].textContent === arguments[0])).backgroundColor"
        self.assertNotEqual(self.js(colour, "broken"), self.js(colour, "done"), "it stands out")
        chip = self.browser.find_element(By.XPATH, "//div[@id='totals']/button[contains(., 'failed')]")
        chip.click()
        eventually(lambda: names() == ["broken"], "the failed one only")
        self.assertEqual(chip.get_attribute("aria-pressed"), "true")
        self.browser.find_element(By.ID, "filter").send_keys("idle")
        self.see("#jobs-table", "no job matches")
        chip.send_keys(Keys.ENTER)
        eventually(lambda: sorted(names()) == ["idle", "idler"], "again all that the filter finds")
        self.browser.find_element(By.ID, "filter").clear()
        self.browser.find_element(By.ID, "filter").send_keys(" ")
        for number in range(4):
            self.submit(cluster, sh_job(f"broken-{number}", "exit 3", 1, backoffLimit=0))
            cluster.wait(f"broken-{number}", finished)
        eventually(lambda: len(found := names()) == 8 and [name.startswith("broken") for name in found[:5]] == [True] * 3 + [False] * 2,
                   "three of those that failed lately, what is not over, the rest")
        self.clean()

    def test_an_array_has_tasks(self):
        """However large: its numbers are ranges, not a list."""
        cluster = self.cluster(agents=1, slots=3)
        witness = self.witness(cluster)
        job = witness.job("array", 'code=0; [ "$MUSTER_INPUT" != 25 ] || code=1', 6, backoffLimitPerIndex=0, parallelism=3)
        job["metadata"]["annotations"] = {"muster.dev/inputs": "muster inputs 1\n0 11-13,20-30:5\n"}
        job["spec"]["template"]["spec"]["containers"][0].setdefault("env", []).append({"name": "SLURM_ARRAY_TASK_ID", "value": "$(MUSTER_INPUT)"})
        self.submit(cluster, job)
        cluster.wait("array", finished)
        self.open(cluster, "array")
        eventually(lambda: [row[:3] for row in self.rows("#failed-pods")] == [["4", "25", "exit 1"]], "the task that failed")
        self.see("#why-details", "failed tasks: 25")
        self.see("#set-failed", "tasks 25")
        self.see("#set-succeeded", "tasks 11-13,20,30")
        self.browser.find_element(By.ID, "map").send_keys("f")
        self.see("#cell", "task 25: failed")
        field = self.browser.find_element(By.ID, "index")
        self.assertEqual(field.get_attribute("value"), "25")
        for task, shown in (("13", "task 13: succeeded"), ("14", "there is no task 14")):
            field.clear()
            field.send_keys(task + "\n")
            self.see("#cell", shown)
        self.clean()

    def test_a_row_of_a_pod_has_its_cause_input_and_the_end_of_its_log(self):
        cluster = self.cluster(agents=1, slots=3)
        witness = self.witness(cluster)
        many = "n=0; while [ $n -lt 30 ]; do n=$((n + 1)); echo line $n; done"
        evil = "printf '%b' '" + EVIL + "\\033[31m red\\0342\\0200\\0256 10%\\r100%\\n' >&2"
        long = "head -c 100000 /dev/zero | tr '\\0' x"
        work = (f'case "$i" in 0) {many}; {evil}; kill -9 $$$$;; 1) {long}; code=7;; '
                '*) echo begun; ' + UNTIL_GO + "; echo over; code=0;; esac")
        job = witness.job("prints", work, 3, backoffLimitPerIndex=0, parallelism=3)
        job["metadata"]["annotations"] = {"muster.dev/inputs": f"first\tcolumn\n{EVIL}\nthird\n"}
        self.submit(cluster, job)
        self.open(cluster, "prints")
        self.assertEqual(self.js("document.activeElement.tagName"), "BODY", "on load, nothing has the focus")
        eventually(lambda: sorted(row[:3] for row in self.rows("#failed-pods")) ==
                   [["0", "first column", "SIGKILL (exit 137)"], ["1", EVIL, "exit 7"]], "causes and inputs")
        self.assertEqual(self.rows("#pods"), [])
        # Open a row: the last lines of stderr and stdout, as text.
        for button in self.browser.find_elements(By.CSS_SELECTOR, "#failed-pods button.toggle"):
            if button.text == "0":
                button.send_keys(Keys.ENTER)
                self.assertEqual(button.get_attribute("aria-expanded"), "true")
        self.see("#failed-pods tr.log", "line 30")
        log = self.text("#failed-pods tr.log")
        self.assertIn("stdout, last 10 lines\nline 21\n", log)
        self.assertNotIn("\nline 20\n", log)
        self.assertIn("stderr, 1 line\n100%", log, "what a terminal would show")
        self.assertNotIn("\x1b", log)
        # Opening another row closes it; an endless line is cut.
        for button in self.browser.find_elements(By.CSS_SELECTOR, "#failed-pods button.toggle"):
            if button.text == "1":
                button.click()
        self.see("#failed-pods tr.log", "xxx")
        self.assertLess(len(self.text("#failed-pods tr.log")), 500)
        self.assertEqual(len(self.js("musterState.log")), 1)
        # For the selected index, the newest row is open and follows the output.
        self.browser.find_element(By.ID, "map").send_keys("r")
        self.see("#cell", "index 2: running · third")
        self.see("#cell-why", "attempt 0 has been running on node node-0")
        self.see("#pods", "begun")
        looks = "[musterState.log.find(l => l.table === 'pods').looks, performance.now()]"
        before, begun = self.js(looks)
        eventually(lambda: self.js(looks)[0] >= before + 2, "it is read again")
        after, now = self.js(looks)
        self.assertLessEqual((after - before - 1) * 1400, now - begun, "at most every 1.5 s")
        (witness.folder / "go").touch()
        self.see("#pods", "begun\nover")
        self.see("#pods", "Succeeded")
        self.browser.find_element(By.ID, "close").click()
        self.assertEqual(self.js("musterState.log"), [], "a closed job reads no logs")
        self.assertIsNone(self.js("window.hacked"))
        self.assertEqual(self.js("document.images.length"), 0)
        self.clean()

    def test_page_shows_why_a_job_waits_and_until_when(self):
        cluster = self.cluster(agents=0, base="10m", top="10m")
        self.submit(cluster, sh_job("waits", "exit 1", 2000, parallelism=1500, backoffLimitPerIndex=1))
        self.open(cluster, "waits")
        self.see("#why-text", "1,500 pods are waiting for a slot: there are no nodes")
        cluster.start_agent("node-0", extra=("--hollow", "--hollow-exit-code", "1"))
        cluster.wait_nodes()
        untaint(cluster)
        self.see("#why", "the next retry is in 9m")
        self.browser.find_element(By.ID, "map").send_keys("b")
        self.see("#cell-why", "attempt 1 may start in 9m")
        self.js("void (Detail.prototype.explain = async () => {})")  # a request may be in flight
        for _ in range(2):
            before = self.text("#why")
            eventually(lambda: self.text("#why") != before, "the time runs without another explanation")  # noqa: B023
        self.clean()

    def test_page_shows_rate_and_time_left(self):
        # The same estimates as in `muster run`: ten pods of 10 minutes on 4 slots, after 10 minutes.
        cluster = self.cluster(agents=1, slots=10, agent_extra=["--hollow", "--hollow-duration", "100ms"])
        untaint(cluster)
        self.open(cluster)
        played = """(() => { const pace = new Pace(), minute = 60000, seen = [];
            for (let at = 0; at < 30 * minute; at += 1000) {
                const wave = Math.floor(at / (10 * minute)), ended = Math.min(10, 4 * wave);
                pace.add({at, settled: ended, ended, running: at ? Math.min(4, 10 - ended) : 0});
                seen.push(pace.left(10 - ended));
            }
            return [seen[5 * 60], seen[10 * 60 + 2], seen[25 * 60]].map(ms => ms === null ? null : Math.round(ms / minute)); })()"""
        self.assertEqual(self.js(played), [None, 20, 5])
        late = """(started => { const pace = new Pace(started);
            for (let at = 3600000; at <= 3605000; at += 1000) pace.add({at, settled: 60, ended: 60, running: 4});
            return [pace.left(60), pace.per_second * 3600].map(x => x === null ? null : Math.round(x / 60)); })(arguments[0])"""
        self.assertEqual(self.js(late, 1), [60083, 1], "who comes late knows the average")
        self.assertEqual(self.js(late, 3_590_000), [None, 0], "unless what was seen since contradicts it")
        self.submit(cluster, sh_job("steady", "exit 0", 2000, parallelism=10))
        self.see("#jobs-table", "steady")
        eventually(lambda: matches("^about [0-9]+(s|m)$", self.job_row("steady")[8]), "in its row")
        self.browser.find_element(By.LINK_TEXT, "steady").click()
        eventually(lambda: matches("pace\n[0-9.,]+/s", self.text("#facts")), "its pace")
        self.see("#facts", "left\nabout ")
        retry = "(() => { detail.why = {summary: '', nextRetry: new Date(Date.now() + 3600e3).toISOString()}; return outlook(jobs.get(detail.key)).left; })()"
        self.assertEqual(self.js(retry), "about 1h", "not before the next retry")
        self.clean()

    # ---- large jobs

    def test_page_stays_responsive_with_a_hundred_thousand_indexes(self):
        cluster = self.cluster(agents=1, slots=500, agent_extra=["--hollow", "--hollow-duration", "40ms"])
        untaint(cluster)
        self.open(cluster)
        job = sh_job("large", "exit 0", 100_000, parallelism=1000)
        self.submit(cluster, job)
        self.see("#jobs-table", "large")
        # Measures the longest time for which the page was blocked.
        self.js("void (window.longest = 0, window.last = performance.now(), setInterval(() => {"
                "const now = performance.now(); window.longest = Math.max(window.longest, now - window.last); window.last = now; }, 5))")
        self.browser.find_element(By.LINK_TEXT, "large").click()
        self.until("musterState.map && musterState.map.completions === 100000", "its map")
        seen = {}

        def over():
            counts = self.js("musterState.map.counts")
            self.assertEqual(sum(counts.values()), 100_000)
            seen.update({state: True for state, n in counts.items() if n})
            return counts["succeeded"] == 100_000
        eventually(over, "all 100,000 succeed", 120)
        self.assertLessEqual({"none", "running", "succeeded"}, set(seen), "it was seen on its way")
        layout = self.js("musterState.map.layout")
        self.assertEqual(layout["per"], 1, "one cell an index")
        self.assertGreaterEqual(layout["size"], 2)
        self.assertFalse(self.js("document.getElementById('lens').hidden"), "cells this small have a finer view")
        canvas = self.browser.find_element(By.ID, "map")
        canvas.send_keys(Keys.END)
        self.see("#cell", "index 99999: succeeded")
        drawn, longest, renders = self.js("musterState.map.drawMs"), self.js("window.longest"), self.js("musterState.renders")
        print(f"10^5 cells are drawn in {drawn:.1f} ms; the page was held up for {longest:.0f} ms at most; {renders} drawings")
        self.assertLess(drawn, 500)
        self.assertLess(longest, 2000, "the page stayed responsive")
        self.clean()

    def test_a_million_indexes_share_cells(self):
        cluster = self.cluster(agents=0)
        job = sh_job("huge", "exit 0", 1_000_000, parallelism=10, suspend=True)
        self.submit(cluster, job)
        self.open(cluster, "huge")
        self.until("musterState.map && musterState.map.layout && musterState.map.completions === 1000000", "its map")
        layout = self.js("musterState.map.layout")
        self.assertGreater(layout["per"], 1)
        self.assertGreaterEqual(layout["columns"] * layout["rows"] * layout["per"], 1_000_000, "each index has a cell")
        self.browser.find_element(By.ID, "map").send_keys(Keys.END)
        self.see("#cell", "index 999999: not created")
        self.clean()

    def test_page_lists_and_filters_a_thousand_jobs(self):
        cluster = self.cluster(agents=0)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda i: self.submit(cluster, sh_job(f"many-{i:04}", "exit 0", 1, suspend=True)), range(1000)))
        self.open(cluster)
        self.until("musterState.jobs.length === 1000 && document.querySelectorAll('#jobs-table tbody tr').length === 1000", "all of them")
        self.see("#totals", "1,000 suspended")
        self.panes_scroll_and_nothing_in_them()
        self.browser.find_element(By.ID, "filter").send_keys("many-07 susp")
        self.until("document.querySelectorAll('#jobs-table tbody tr').length === 100", "a hundred are left")
        self.assertEqual(self.text("#jobs-note"), "100 of 1,000")
        cluster.api.delete("many-0700")
        self.until("document.querySelectorAll('#jobs-table tbody tr').length === 99", "a deleted one goes")
        before = self.js("musterState.renders")
        begun = self.js("performance.now()")
        for i in range(150):
            cluster.api.patch(f"many-{i:04}", {"metadata": {"labels": {"seen": "yes"}}})
        took, renders = self.js("performance.now()") - begun, self.js("musterState.renders") - before
        self.assertLessEqual(renders, took / 250 + 2, "at most four drawings a second, whatever comes in")
        self.clean()

    # ---- layout

    SCROLLERS = """[...document.querySelectorAll('*')].filter(e => e.scrollHeight > e.clientHeight + 1 && e.clientHeight > 0 &&
        (e === document.scrollingElement ? getComputedStyle(document.body).overflowY !== 'hidden' : ['auto', 'scroll'].includes(getComputedStyle(e).overflowY)))"""

    def panes_scroll_and_nothing_in_them(self):
        """In a wide window, the table of jobs reaches the bottom, the page itself does not scroll, and no scroller is nested in another."""
        self.assertEqual(self.js(self.SCROLLERS + ".map(e => e.id)"), ["jobs-scroll"])
        below = self.js("innerHeight - document.getElementById('jobs-scroll').getBoundingClientRect().bottom")
        nodes = self.js("document.getElementById('nodes').getBoundingClientRect().height")
        self.assertLess(below, nodes + 40, "below it are the nodes only")
        self.assertGreater(self.js("document.getElementById('jobs-scroll').clientHeight"), self.js("innerHeight") / 2)

    def test_on_a_phone_progress_comes_first(self):
        cluster = self.cluster(agents=1, slots=3, base="10m", top="10m")
        witness = self.witness(cluster)
        self.submit(cluster, mixed(witness))
        self.submit(cluster, witness.job("done", "code=0", 2))
        cluster.wait("done", finished)
        try:
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
            self.open(cluster)
            self.see("#jobs-table", "mixed")
            fits = "document.scrollingElement.scrollWidth <= 390"
            self.until(fits, "nothing is wider than the screen")
            box = "document.querySelector(arguments[0]).getBoundingClientRect()"
            self.until("document.querySelector('#jobs-table .bar span').getBoundingClientRect().width > 0", "its bar")
            bar, status = self.js(box, "#jobs-table .bar"), self.js(box, "#jobs-table tbody .status")
            self.assertGreater(bar["width"], 300)
            self.assertLess(bar["bottom"], status["top"] + 1, "the bar is above the status")
            self.assertEqual(self.js("document.querySelector('#jobs-table').getAttribute('role')"), "table", "a card is still a row")
            self.browser.find_element(By.LINK_TEXT, "done").click()
            self.see("#facts", "(user 0")
            self.until(fits, "what it used is not wider, either")
            self.browser.back()
            self.see("#jobs-table", "mixed")
            self.browser.find_element(By.LINK_TEXT, "mixed").click()
            eventually(lambda: self.states() == MIXED, "its map")
            self.assertFalse(self.browser.find_element(By.ID, "jobs").is_displayed(), "the job takes the place of the list")
            progress, canvas = self.js(box, "#progress .bar"), self.js(box, "#map")
            self.assertLess(progress["bottom"], 300, "what a user sees first")
            self.assertLess(progress["bottom"], canvas["top"])
            self.until(fits, "nothing is wider than the screen")
            self.assertEqual([name for name in self.js(self.SCROLLERS + ".map(e => e.tagName)") if name != "HTML"], [], "only the page scrolls")
            self.browser.find_element(By.XPATH, "//div[@id='totals']/button[contains(., 'running')]").click()
            self.until("document.getElementById('detail').hidden", "a count leads back to the list")
            self.see("#jobs-table", "mixed")
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        (witness.folder / "go").touch()
        self.clean()

    # ---- accessibility

    def test_the_colours_differ_in_lightness(self):
        cluster = self.cluster(agents=0)
        self.open(cluster)
        for scheme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            self.assertTrue(self.js(f"matchMedia('(prefers-color-scheme: {scheme})').matches"))
            palette = self.js("musterState.palette()")
            light = sorted((lightness(colour), state) for state, colour in palette.items())
            for (low, one), (high, other) in zip(light, light[1:]):
                self.assertGreaterEqual(high - low, 9, f"{scheme}: {one} ({low:.0f}) and {other} ({high:.0f})")
            colour = "getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"
            for text, ground in (("--text", "--page"), ("--quiet", "--page"), ("--quiet", "--raised"), ("--link", "--page"), ("--link", "--alarm-tint"),
                                 ("--alarm", "--alarm-tint"), ("--alarm", "--page"), ("--alarm", "--raised"), ("--good", "--page"), ("--good", "--raised")):
                ratio = contrast(self.js(colour, text), self.js(colour, ground))
                self.assertGreaterEqual(ratio, 4.5, f"{scheme}: {text} on {ground} ({ratio:.1f})")
        moves = "getComputedStyle(document.querySelector('.bar.big span')).transitionDuration !== '0s'"
        for wish, expected in (("no-preference", True), ("reduce", False)):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": wish}]})
            self.assertEqual(self.js(moves), expected, wish)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_tables_have_accessible_headers(self):
        cluster = self.cluster(agents=1)
        self.open(cluster)
        self.see("#nodes-table", "node-0")
        self.assertEqual(self.js("[...document.querySelectorAll('thead th')].filter(h => h.scope !== 'col').length"), 0)
        self.assertEqual(self.js("[...document.querySelectorAll('tbody th')].filter(h => h.scope !== 'row').length"), 0)
        self.assertEqual(self.js("document.getElementById('connection').getAttribute('aria-live')"), "polite")
        self.assertEqual(self.js("document.documentElement.lang"), "en")
        self.assertEqual(self.js("[...document.querySelectorAll('input')].filter(i => !i.labels.length).length"), 0, "each field has a label")
        numbers = self.js("[...document.querySelectorAll('td.n')].map(c => [getComputedStyle(c).textAlign, getComputedStyle(c).fontVariantNumeric])")
        self.assertEqual({tuple(pair) for pair in numbers}, {("right", "tabular-nums")})


def luminance(colour):
    """Relative luminance of a #rrggbb color, 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """The contrast ratio of WCAG 2, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(colour):
    """L* of a #rrggbb color, 0 to 100."""
    y = luminance(colour)
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


def screenshots(folder):
    """web.png: a job with indexes in several states, among other jobs. web-phone.png: a failed job."""
    cluster = Cluster(agents=1, slots=48, base="40s", top="10m")
    browser = new_browser(1520, 1040)
    witness = Witness(cluster.dir / "witness")
    url = f"http://{cluster.api_addr}/"

    def shoot(name):
        browser.execute_script("document.activeElement.blur()")
        browser.save_screenshot(str(folder / name))
        print(f"{folder / name}: {(folder / name).stat().st_size} bytes")
    try:
        cluster.wait_nodes()
        wrong = ('printf "%s\\n" "Traceback (most recent call last):" "  File \\"import.py\\", line 42, in load" "ValueError: bad row 17 in part-$i.csv" >&2')
        for name, work, n, spec in (("nightly-report", "code=0", 12, {}), ("train", UNTIL_GO, 4, {}),
                                    ("import", f'echo "reading part-$i.csv"; code=0; [ "$i" != 3 ] || {{ {wrong}; code=1; }}', 6, {"backoffLimitPerIndex": 0})):
            cluster.api.create(witness.job(name, work, n, parallelism=n, **spec))
            if name != "train":
                cluster.wait(name, finished)
        work = ('case "$i" in 137|402|611) echo "cannot open $MUSTER_INPUT: No such file" >&2; code=42;; *) [ $(($i * $i % 31)) = 7 ] && code=1 || code=0;; esac; '
                '[ "$i" -lt 600 ] || sleep $((i % 4 + 2))')
        job = witness.job("sweep", work, 1000, parallelism=120, backoffLimitPerIndex=3, podFailurePolicy={"rules": [
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]})
        job["metadata"]["annotations"] = {"muster.dev/inputs": "".join(f"/data/run7/sample_{i}.fq\n" for i in range(1000))}
        cluster.api.create(job)
        cluster.api.call("PUT", "/apis/muster.dev/v1/namespaces/default/jobs/sweep/cancel", {"indexes": "930-949"})
        browser.get(url + "#/default/sweep")
        script = "return window.musterState && musterState.map && musterState.map.counts"
        eventually(lambda: (c := browser.execute_script(script)) and c["running"] > 40 and c["failed"] == 3 and c["cancelled"] == 20 and c["backoff"] > 10 and c["pending"] > 10,
                   "the picture", 60)
        browser.find_element(By.ID, "map").send_keys("f")
        eventually(lambda: "No such file" in browser.find_element(By.ID, "pods").text, "the log of a failed pod")
        eventually(lambda: "about " in browser.find_element(By.ID, "facts").text, "the time left", 60)
        shoot("web.png")
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 730, "deviceScaleFactor": 1.5, "mobile": True})
        browser.get(url + "#/default/import")
        browser.refresh()
        eventually(lambda: "bad row 17" in browser.find_element(By.ID, "failed-pods").text, "the log of the failed pod")
        shoot("web-phone.png")
        (witness.folder / "go").touch()
    finally:
        browser.quit()
        cluster.close()
        World.sweep(cluster.dir / "witness")


if __name__ == "__main__":
    if sys.argv[1:] == ["screenshot"]:
        screenshots(ROOT / "docs")
    else:
        unittest.main(verbosity=2, warnings="ignore")
