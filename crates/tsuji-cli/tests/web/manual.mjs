// Opens every page of the built manual in a real browser, from its folder and without a network: nothing is refused to those who
// read by other means (axe), nothing is wrong on the console, nothing is asked for elsewhere, and no page is wider than a small
// phone. `scripts/web-clients` puts it beside its packages.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { AXE, RULES, WATCHDOG, launch } from './browser.mjs';

const [executablePath, folder, shots] = process.argv.slice(2);
// What depends on the theme alone, and on the width.
const COLOURS = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };
const PLACES = { type: 'rule', values: ['scrollable-region-focusable', 'target-size', 'region'] };
const ROOT = resolve(folder);
// Of one page of each kind there are pictures, to be looked at.
const PICTURED = ['index', 'docs/index', 'docs/concepts', 'docs/tutorial/talker-and-listener', 'docs/how-to/policy',
  'docs/reference/options', 'docs/reference/json', 'docs/programs', 'docs/decisions/index', 'ARCHITECTURE'];
// What is round the text is alike in all pages: these are looked at whole.
const isPictured = (path) => PICTURED.includes(path.replace(/\.html$/, ''));

rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });
// Contents of the side bar without scripts, and lists of files, are no pages with it.
const isPage = (path) => path.endsWith('.html') && path !== 'toc.html';
const pages = readdirSync(ROOT, { recursive: true }).filter(isPage).sort();
assert.ok(pages.length > 50, `${folder} has ${pages.length} pages`);
for (const name of PICTURED) assert.ok(pages.includes(`${name}.html`), `${name} is no page`);

const browser = await launch(executablePath);
const complaints = [];
const open = async (options) => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(WATCHDOG);
  const note = (what) => complaints.push(`${relative(ROOT, new URL(page.url()).pathname)}: ${what}`);
  page.on('console', (it) => { if (['error', 'warning'].includes(it.type())) note(`${it.type()}: ${it.text()}`); });
  page.on('pageerror', (error) => note(`thrown: ${error.stack}`));
  page.on('request', (it) => { if (!/^(file|data|blob):/.test(it.url())) note(`asked for ${it.url()}`); });
  // What was still to come when the next page was opened is given up; what is not there has another error.
  const isGivenUp = (it) => it.failure()?.errorText === 'net::ERR_ABORTED';
  page.on('requestfailed', (it) => { if (!isGivenUp(it)) note(`did not get ${it.url()}: ${it.failure()?.errorText}`); });
  return page;
};
const accessible = async (page, what, rules = RULES, whole = true) => {
  await page.evaluate(AXE);
  // Style sheets of other folders may not be read by scripts here.
  const { violations } = await page.evaluate(([runOnly, whole]) => {
    const within = whole ? document : document.querySelector('#mdbook-content') ?? document;
    return axe.run(within, { runOnly, preload: false });
  }, [rules, whole]);
  for (const it of violations) {
    for (const node of it.nodes) complaints.push(`${what}: ${it.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`);
  }
};

const each = async (name, options, pages, look) => {
  const began = Date.now();
  const page = await open(options);
  for (const path of pages) {
    await page.goto(pathToFileURL(join(ROOT, path)).href);
    await look(page, path);
    if (isPictured(path)) await page.screenshot({ path: `${shots}/${path.replaceAll('/', '-')}-${name}.png` });
  }
  await page.context().close();
  console.log(`ok: ${name}, ${pages.length} pages in ${Math.round((Date.now() - began) / 1000)} s`);
};
// Decisions look alike: of colours one is enough.
const unlike = pages.filter((it) => !/decisions\/00[0-3]/.test(it));
const wide = { viewport: { width: 1280, height: 860 } };
// What is looked for is found, by the keyboard alone, and the page that is found has it.
const page = await open(wide);
await page.goto(pathToFileURL(join(ROOT, 'index.html')).href);
await page.keyboard.press('s');
await page.locator('#mdbook-searchbar').waitFor();
await page.keyboard.type('handover');
const first = page.locator('#mdbook-searchresults a').first();
await first.waitFor();
await accessible(page, 'search');
await page.screenshot({ path: `${shots}/search.png` });
await first.click();
await page.getByText(/handover/i).first().waitFor();
console.log('ok: search');
const contents = page.locator('#mdbook-sidebar-toggle');
for (const wanted of ['false', 'true']) {
  await contents.press('Enter');
  assert.equal(await contents.getAttribute('aria-expanded'), wanted);
}
console.log('ok: contents by the keyboard');
await Promise.all([
  each('light', wide, pages, (page, path) => accessible(page, `${path}, light`, RULES, isPictured(path))),
  each('dark', { ...wide, colorScheme: 'dark' }, unlike, (page, path) => accessible(page, `${path}, dark`, COLOURS, isPictured(path))),
  each('360', { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }, pages, async (page, path) => {
    await accessible(page, `${path}, 360 px`, PLACES, isPictured(path));
    const width = await page.evaluate(() => {
      // What scrolls in itself may be wider.
      scrollTo(10_000, 0);
      return [document.documentElement.scrollWidth, scrollX];
    });
    if (width[0] > 360 || width[1] > 0) complaints.push(`${path}: ${width[0]} px wide, and scrolls by ${width[1]}, on a phone of 360`);
  }),
]);

await browser.close();

if (complaints.length > 0) {
  console.log(complaints.join('\n'));
  console.log(`${complaints.length} complaints`);
  process.exit(1);
}
console.log(`ok: ${pages.length} pages, light, dark and at 360 px, without a finding of axe or a word on the console`);
