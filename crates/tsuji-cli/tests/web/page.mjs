// Uses the page of the bridge as people do, in a real browser, and says a line for each thing that it could do. What is wrong is an
// error, which ends it. `scripts/web-clients` puts it beside its packages.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync } from 'node:fs';
import { AXE, RULES, WATCHDOG, launch } from './browser.mjs';

const [executablePath, port, guardedPort, viewerPort, playedPort, shots] = process.argv.slice(2);
const TABS = ['topics', 'routes', 'picture', 'plot', 'publish', 'call'];

rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });
const browser = await launch(executablePath);
// What is wrong is said where the rest is.
const fail = async (error) => {
  console.log(error.stack);
  const pages = browser.contexts().flatMap((it) => it.pages());
  await Promise.allSettled(pages.map((it, at) => it.screenshot({ path: `${shots}/failed-${at}.png` })));
  process.exit(1);
};
process.on('uncaughtException', fail).on('unhandledRejection', fail);

const complaints = [];
// What the browser says while nobody listens at the port, or to a connection that came just before nobody did. That pixels are read here it says too.
let mayFail = false;

// What its WebSockets agreed on, and what it said by them, by page.
const extensions = new Map();
const said = new Map();

// A page of its own, which may ask nobody but the bridge.
const open = async (to, options = {}, scheme = 'http', path = '/') => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WATCHDOG);
  const wire = await context.newCDPSession(page);
  wire.on('Network.webSocketHandshakeResponseReceived', ({ response }) => {
    const agreed = Object.entries(response.headers).find(([name]) => name.toLowerCase() === 'sec-websocket-extensions');
    extensions.set(page, agreed?.[1] ?? '');
  });
  await wire.send('Network.enable');
  page.on('console', (it) => {
    const isExpected = (mayFail && /ERR_(CONNECTION_(REFUSED|RESET)|SOCKET_NOT_CONNECTED)|WebSocket connection to .* failed|already in CLOSING or CLOSED/.test(it.text())) || /willReadFrequently/.test(it.text());
    if (['error', 'warning'].includes(it.type()) && !isExpected) complaints.push(`${it.type()}: ${it.text()} ${it.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(`thrown: ${error.stack}`));
  const isHere = (url) => new URL(url).host === `127.0.0.1:${to}` || url.startsWith('blob:') || url.startsWith('data:');
  page.on('request', (it) => { if (!isHere(it.url())) complaints.push(`asked for ${it.url()}`); });
  said.set(page, []);
  page.on('websocket', (it) => {
    if (!isHere(it.url())) complaints.push(`connected to ${it.url()}`);
    it.on('framesent', ({ payload }) => said.get(page).push(String(payload)));
  });
  const answer = await page.goto(`${scheme}://127.0.0.1:${to}${path}`);
  assert.equal(answer.status(), 200);
  return page;
};

// Waits until what `look` finds in the page is something.
const until = (page, look, of) => page.waitForFunction(look, of, { timeout: WATCHDOG });
const text = async (page, id, wanted) => {
  await until(page, ([id, source]) => new RegExp(source).test(document.getElementById(id).textContent), [id, wanted.source]);
  return page.locator(`#${id}`).textContent();
};
const connected = (page) => text(page, 'state', /^connected$/);
const tab = (page, name) => page.locator(`#tab-${name}`).click();
const row = (page, table, name) => page.locator(`#${table}`).getByRole('row').filter({ hasText: name }).first();
const fill = async (page, id, value) => {
  await page.locator(`#${id}`).fill(value);
  await page.locator(`#${id}`).dispatchEvent('change');
};
const accessible = async (page, what) => {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate((runOnly) => axe.run(document, { runOnly }), RULES);
  const told = violations.map((it) => `${what}: ${it.id}: ${it.nodes.map((node) => `${node.html} ${node.failureSummary}`).join('\n')}`);
  assert.deepEqual(told, []);
};
const pixel = (page, x, y) => page.evaluate(([x, y]) => [...document.getElementById('picture-canvas').getContext('2d')
  .getImageData(x, y, 1, 1).data], [x, y]);
const done = (what) => console.log(`ok: ${what}`);

const page = await open(port);
await connected(page);
assert.equal(extensions.get(page), '');
done('connects');

// Topics: rates without a subscription of the page's.
await until(page, () => /\d Hz/.test([...document.querySelectorAll('#topics-rows tr')].find((it) => it.textContent.includes('/chatter'))?.textContent));
const counters = await text(page, 'counters', /samples for clients/);
assert.match(counters, /(^| )0 samples for clients/);
assert.match(await row(page, 'topics-rows', '/chatter').textContent(), /std_msgs\/msg\/String/);
assert.match(await row(page, 'topics-rows', '/camera/image').textContent(), /–1 → 0/);
done('topics and rates');
await page.locator('#topics-filter').fill('vector3');
await until(page, () => document.querySelectorAll('#topics-rows tr').length === 1);
await page.locator('#topics-filter').fill('');
await page.getByRole('button', { name: '/chatter' }).click();
await text(page, 'topic-message', /"data": "hello"/);
assert.match(await page.locator('#topic-facts').textContent(), /Subscriptions[12]: /);
assert.equal(await page.evaluate(() => document.activeElement.id), 'topic-name');
await page.screenshot({ path: `${shots}/topics-light.png` });
await page.keyboard.press('Escape');
assert.equal(await page.evaluate(() => document.activeElement.textContent), '/chatter');
assert.ok(await page.locator('#topic').isHidden());
done('the messages of a topic');

// Routes with reasons.
await tab(page, 'routes');
// The one of the page's own subscription goes with what the page shows of it, which was closed just now.
await until(page, () => [...document.querySelectorAll('#routes-table tbody.flow')].filter((it) => it.textContent.includes('/chatter')).length === 1);
const flow = page.locator('#routes-table tbody.flow').filter({ hasText: '/chatter' });
await flow.locator('summary').click();
await flow.locator('dl').getByText('Because').waitFor();
const told = await flow.textContent();
assert.match(told, /shm|inproc|cyclonedds/);
assert.match(told, /Not (shm|inproc|cyclonedds)/);
assert.match(told, /\d sent, \d+ taken/);
assert.match(await page.locator('#routes-transports').textContent(), /flows?/);
await page.screenshot({ path: `${shots}/routes-light.png` });
// What is open stays open while everything is told anew.
const before = await flow.locator('dl').textContent();
await until(page, (before) => [...document.querySelectorAll('#routes-table details[open] dl')].some((it) => it.textContent !== before), before);
await flow.locator('summary').click();
done('routes and reasons');

// A click sets the transport of a topic, with what happens shown, and another takes it back.
const group = (of, topic) => of.locator('#routes-table tbody.topic').filter({ has: of.getByRole('heading', { name: topic, exact: true }) });
const chatter = group(page, '/chatter');
const choice = (name) => chatter.getByRole('button', { name, exact: true });
const saying = async (of, wanted) => {
  await of.locator('.told').filter({ hasText: wanted }).waitFor();
  return of.locator('.told').textContent();
};
await choice('auto').and(page.locator('[aria-pressed=true]')).waitFor();
await flow.locator('.figure').filter({ hasText: /\d (µs|ms)$/ }).waitFor();
await choice('cyclonedds').click();
await saying(chatter, /^Set to cyclonedds, for 1 flow\. shm → cyclonedds: the user has set it; opened in [\d.]+ (µs|ms), settled in [\d.]+ (µs|ms), \d+ held; median ~?[\d.]+ (µs|ms) → ~?[\d.]+ (µs|ms)\.$/);
await choice('cyclonedds').and(page.locator('[aria-pressed=true]')).waitFor();
await flow.locator('tr').first().getByText('cyclonedds', { exact: true }).waitFor();
const past = await flow.locator('.history li').allTextContents();
assert.equal(past.length, 2);
assert.match(past[0], /shm the two ends have met; median/);
assert.match(past[1], /^\d.* cyclonedds the user has set it/);
assert.equal(await flow.locator('.past span').count(), 2);
// What that engine takes, in each process that runs it.
const engine = page.locator('#engines-rows tr').filter({ hasText: 'cyclonedds' }).filter({ hasText: 'running since' }).first();
await engine.waitFor();
assert.match(await engine.getByRole('rowheader').textContent(), /^\S+ \d+: cyclonedds/);
const [memory, threads, users, why] = await engine.locator('td').allTextContents();
assert.match(memory, /^~?[\d.]+ k?M?B$/);
assert.match(threads, /^[1-9]\d*$/);
assert.match(users, /^\d+$/);
assert.notEqual(why, '');
await text(page, 'engines-count', /^\d+ processes$/);
assert.match(await page.locator('#engines-rows tr.process').first().textContent(), /: \d+ threads, [\d.]+ MB resident, [\d.]+ [MGT]B of address spacebuilt in: inproc, shm/);
await accessible(page, 'a topic that is set');
await page.screenshot({ path: `${shots}/routes-set-light.png` });

// By the keyboard, to one that cannot carry it: nothing is changed by that, and the reason is said.
await choice('cyclonedds').focus();
await page.keyboard.press('Home');
assert.equal(await page.evaluate(() => document.activeElement.textContent), 'auto');
await page.keyboard.press('ArrowRight');
assert.equal(await page.evaluate(() => document.activeElement.textContent), 'inproc');
await page.keyboard.press('Enter');
await chatter.getByRole('alert').filter({ hasText: '/chatter: nothing is set: none of its flows can go by inproc: out of reach' }).waitFor();
await choice('cyclonedds').and(page.locator('[aria-pressed=true]')).waitFor();
assert.equal(await flow.locator('.history li').count(), 2);
await page.keyboard.press('Tab');
assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Undo: back to auto');
await page.keyboard.press('Enter');
await saying(chatter, /^Left to the policy, for 1 flow\. cyclonedds → shm: the user has left it to the policy; .*median/);
await choice('auto').and(page.locator('[aria-pressed=true]')).waitFor();
assert.ok(await chatter.locator('.undo').isHidden() && await chatter.getByRole('alert').isHidden());
assert.equal(await page.evaluate(() => document.activeElement.closest('[role=toolbar]')?.getAttribute('aria-label')), 'Transport of /chatter');
assert.equal(await flow.locator('.history li').count(), 3);
// It comes back when the tab does, and is asked for meanwhile by nobody.
const asked = (of, service) => said.get(of).filter((it) => it.includes(`/rosapi/${service}"`)).length;
await tab(page, 'call');
await until(page, () => !document.getElementById('call').hidden);
const more = () => ['tsuji_route_settings', 'tsuji_engines'].map((it) => asked(page, it));
const [looks, since] = [asked(page, 'tsuji_routes'), more()];
assert.ok(since.every((it) => it > 0));
while (asked(page, 'tsuji_routes') < looks + 2) await page.waitForTimeout(100);
assert.deepEqual(more(), since);
await tab(page, 'routes');
await choice('cyclonedds').waitFor();
done('a transport is set and taken back');

// Who has set a topic that has no flow can take that back too.
const flows = await page.evaluate(async (url) => {
  const { Ros, Service } = await import('/vendor/roslib.js');
  const ros = new Ros({ url });
  await new Promise((end) => ros.on('connection', end));
  const service = new Service({ ros, name: '/rosapi/tsuji_set_route', serviceType: '' });
  const told = await new Promise((end, failed) => service.callService({ topic: '/camera/odd', transport: 'shm' }, end, (it) => failed(new Error(it))));
  ros.close();
  return told.flows;
}, `ws://127.0.0.1:${port}`);
assert.equal(flows, 0);
const odd = group(page, '/camera/odd');
await odd.getByText('no flow now', { exact: true }).waitFor();
await odd.getByRole('button', { name: 'shm', exact: true }).and(page.locator('[aria-pressed=true]')).waitFor();
await odd.getByRole('button', { name: 'Undo: back to auto' }).click();
await saying(odd, /^Left to the policy; it has no flow now\.$/);
await until(page, () => document.activeElement.textContent === '/camera/odd');
assert.equal(await odd.getByRole('button').count(), 0);
done('a topic without flows is set and taken back');

// Who may only look sees why.
const viewer = await open(viewerPort);
await connected(viewer);
await tab(viewer, 'routes');
await text(viewer, 'routes-rights', /^Transports can be looked at and not set: this user of the bridge has no right set_route there\.$/);
assert.equal(await viewer.locator('#routes-table').getByRole('button').count(), 0);
await group(viewer, '/chatter').waitFor();
await viewer.locator('#engines-rows tr.process').first().waitFor();
await accessible(viewer, 'routes that may not be set');
await viewer.context().close();
done('who may not set a transport is told');

// Pictures.
await tab(page, 'picture');
await page.locator('#picture-topic').selectOption('/camera/image');
await until(page, () => document.getElementById('picture-canvas').width === 320);
await text(page, 'picture-facts', /Encodingbgr8/);
await until(page, () => /Shown\d+\.\d Hz/.test(document.getElementById('picture-facts').textContent));
// Red, green and blue are in their places.
assert.deepEqual(await pixel(page, 0, 0), [70, 110, 70, 255]);
assert.deepEqual(await pixel(page, 0, 105), [84, 88, 95, 255]);
await until(page, () => /Age[\d.]+ (µs|ms)/.test(document.getElementById('picture-facts').textContent));
await page.screenshot({ path: `${shots}/picture-light.png` });
await page.locator('#picture-topic').selectOption('/camera/depth');
await text(page, 'picture-facts', /Encoding16UC1.*Values500 to 3600/);
assert.deepEqual(await pixel(page, 0, 0), [0, 0, 0, 255]);
assert.deepEqual(await pixel(page, 31, 0), [255, 255, 255, 255]);
await page.locator('#picture-topic').selectOption('/camera/odd');
await text(page, 'picture-none', /bayer_rggb8 is not shown; shown are rgb8/);
done('pictures');

// roslib itself in this browser: subscribes, publishes, serves and calls. It also brings a picture that is packed.
const heard = await page.evaluate(async (url) => {
  const { Ros, Service, Topic } = await import('/vendor/roslib.js');
  const ros = new Ros({ url });
  await new Promise((end) => ros.on('connection', end));
  const said = [];
  for (const compression of ['none', 'cbor', 'png']) {
    const topic = new Topic({ ros, name: `/browser_${compression.replace('-', '_')}`, messageType: 'std_msgs/String', compression });
    const message = new Promise((end) => topic.subscribe(end));
    topic.publish({ data: `hello ${compression} \u{1f980}` });
    said.push((await message).data);
    topic.unsubscribe();
  }
  const multiply = { ros, name: '/multiply', serviceType: 'example_interfaces/AddTwoInts' };
  await new Service(multiply).advertise((request, response) => {
    response.sum = request.a * request.b;
    return true;
  });
  // Who asks too early is told that nobody serves, and asks again.
  const ask = () => new Promise((end) => new Service(multiply).callService({ a: 6, b: 7 }, (it) => end(it.sum), () => end()));
  let product;
  while (product === undefined) product = await ask();
  said.push(product);

  const canvas = Object.assign(document.createElement('canvas'), { width: 48, height: 32 });
  const ink = canvas.getContext('2d');
  ink.fillStyle = 'rgb(10, 200, 30)';
  ink.fillRect(0, 0, 48, 32);
  const [, data] = canvas.toDataURL('image/png').split(',');
  const packed = new Topic({ ros, name: '/camera/packed', messageType: 'sensor_msgs/CompressedImage' });
  setInterval(() => packed.publish({ format: 'png', data }), 100);
  return said;
}, `ws://127.0.0.1:${port}`);
assert.deepEqual(heard, ['hello none 🦀', 'hello cbor 🦀', 'hello png 🦀', 42]);
done('roslib in the browser');
await until(page, () => [...document.getElementById('picture-topic').options].some((it) => it.value === '/camera/packed'));
await page.locator('#picture-topic').selectOption('/camera/packed');
await text(page, 'picture-facts', /Size48 × 32.*Encodingpng/);
assert.deepEqual(await pixel(page, 20, 20), [10, 200, 30, 255]);
done('pictures that are packed');

// A plot, begun from the topic.
await tab(page, 'topics');
await page.getByRole('button', { name: '/wave' }).click();
await page.locator('#topic-plot').click();
await until(page, () => document.getElementById('plot-field').value === 'x');
await page.getByRole('button', { name: 'Add line' }).click();
await page.locator('#plot-field').fill('y');
await page.getByRole('button', { name: 'Add line' }).click();
// The least and largest value of a whole wave, and of half of one.
await until(page, () => {
  const cells = [...document.querySelectorAll('#plot-lines tr')].map((it) => [...it.querySelectorAll('td')].map((td) => Number(td.textContent.replace('−', '-'))));
  return cells.length === 2 && cells[0][1] < -0.99 && cells[0][2] > 0.99 && cells[1][1] < -0.49 && cells[1][2] > 0.49;
});
const inked = () => page.evaluate(() => {
  const canvas = document.getElementById('plot-canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) if (data[at] === 0 && data[at + 1] === 96 && data[at + 2] === 168) count += 1;
  return count;
});
assert.ok(await inked() > 100);
await page.locator('#plot-pause').click();
assert.equal(await page.locator('#plot-pause').getAttribute('aria-pressed'), 'true');
await page.locator('#plot-pause').click();
await page.locator('#plot-field').fill('nothing');
await page.getByRole('button', { name: 'Add line' }).click();
await text(page, 'plot-hint', /nothing is no number in \d+ messages? of \/wave/);
await page.getByRole('button', { name: 'Remove /wave nothing' }).click();
await page.locator('#plot-field').fill('x[');
await page.getByRole('button', { name: 'Add line' }).click();
await text(page, 'plot-hint', /a field is such as/);
await page.locator('#plot-field').fill('x');
await page.locator('#plot-window').selectOption('30');
await page.screenshot({ path: `${shots}/plot-light.png` });
done('plots');

// Whoever is sent the address sees the same, and so does who loads it anew.
const { pathname, hash } = new URL(page.url());
assert.match(hash, /^#plot\?line=%2Fwave%3Ax&line=%2Fwave%3Ay&/);
const shared = await open(port, {}, 'http', pathname + hash);
const lines = (of) => of.locator('#plot-lines tr th').allTextContents();
await until(shared, (count) => document.querySelectorAll('#plot-lines tr').length === count, (await lines(page)).length);
assert.deepEqual(await lines(shared), await lines(page));
assert.equal(await shared.locator('#plot-window').inputValue(), '30');
assert.equal(shared.url(), page.url());
await shared.evaluate(() => { location.hash = '#picture?topic=%2Fcamera%2Fdepth&rate=5'; });
await text(shared, 'picture-facts', /Encoding16UC1/);
assert.equal(await shared.locator('#picture-rate').inputValue(), '5');
await shared.evaluate(() => { location.hash = '#topics?topic=%2Fnobody'; });
await until(shared, () => !document.getElementById('topics').hidden);
assert.ok(await shared.locator('#topic').isHidden());
await shared.evaluate(() => { location.hash = '#topics?topic=%2Fwave'; });
await text(shared, 'topic-message', /"z": 1/);
await shared.reload();
await text(shared, 'topic-message', /"z": 1/);
await shared.locator('#topic-close').click();
assert.equal(new URL(shared.url()).hash, '#topics');
await shared.context().close();
done('what is shown is in the address');

// Publishing: once, again and again, and what is refused.
await tab(page, 'publish');
await fill(page, 'publish-topic', '/cmd_vel');
await until(page, () => document.getElementById('publish-type').value === 'geometry_msgs/msg/Twist');
await until(page, () => document.getElementById('publish-message').value.includes('"angular"'));
const twist = JSON.parse(await page.locator('#publish-message').inputValue());
assert.deepEqual(twist, { linear: { x: 0, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0 } });
twist.linear.x = 1.5;
await page.locator('#publish-message').fill(JSON.stringify(twist, null, 2));
await page.getByRole('button', { name: 'Publish once' }).click();
await text(page, 'publish-done', /^Published 1 message on \/cmd_vel\.$/);
console.log('published on /cmd_vel');
await page.locator('#publish-rate').fill('20');
await page.getByRole('button', { name: 'Publish again and again' }).click();
await text(page, 'publish-count', /Published (\d{2,}) messages/);
assert.equal(await page.locator('#tab-publish').textContent(), 'Publish ●');
await page.screenshot({ path: `${shots}/publish-light.png` });
await page.getByRole('button', { name: 'Stop publishing' }).click();
await text(page, 'publish-done', /^Published \d{2,} messages on \/cmd_vel\.$/);
await page.locator('#publish-message').fill('{\n  "linear": {\n');
await page.getByRole('button', { name: 'Publish once' }).click();
await text(page, 'publish-wrong', /line 3/);
await page.locator('#publish-message').fill('{"linear": {"x": "fast"}}');
await page.getByRole('button', { name: 'Publish once' }).click();
await text(page, 'publish-wrong', /linear/);
await fill(page, 'publish-topic', '/new');
await page.locator('#publish-message').fill('');
await fill(page, 'publish-type', 'nobody_msgs/msg/Nothing');
await text(page, 'publish-wrong', /nobody_msgs/);
await page.locator('#publish-message').fill('{}');
await page.getByRole('button', { name: 'Publish once' }).click();
await text(page, 'publish-wrong', /advertise: type/);
assert.equal(await page.locator('#publish-done').textContent(), '');
// What nobody publishes yet can be chosen all the same.
await until(page, () => [...document.querySelectorAll('#known-types option')].some((it) => it.value === 'nav_msgs/msg/Path'));
await page.locator('#publish-message').fill('');
await fill(page, 'publish-type', 'nav_msgs/msg/Path');
await until(page, () => document.getElementById('publish-message').value.includes('"poses"'));
await page.getByRole('button', { name: 'Publish once' }).click();
await text(page, 'publish-done', /^Published 1 message on \/new\.$/);
// What the page itself asked to be left out is not called dropped.
assert.match(await page.locator('#counters').textContent(), / 0 dropped · [1-9]\d* throttled /);
done('publishes, and says what was refused');

// By the keyboard alone: to the tabs, to the last of them, and a service called.
await page.locator('#main').focus();
const focused = () => page.evaluate(() => document.activeElement.id);
for (let at = 0; at < 10 && !(await focused()).startsWith('tab-'); at++) await page.keyboard.press('Tab');
assert.equal(await focused(), 'tab-publish');
await page.keyboard.press('Home');
assert.equal(await focused(), 'tab-topics');
await page.keyboard.press('ArrowRight');
assert.equal(await focused(), 'tab-routes');
assert.ok(await page.locator('#routes').isVisible());
await page.keyboard.press('End');
assert.equal(await focused(), 'tab-call');
await page.keyboard.press('Tab');
assert.equal(await focused(), 'call-service');
await page.keyboard.type('/add');
await page.keyboard.press('Tab');
await until(page, () => document.getElementById('call-type').value === 'example_interfaces/srv/AddTwoInts');
await until(page, () => document.getElementById('call-request').value.includes('"b"'));
await page.keyboard.press('Tab');
assert.equal(await focused(), 'call-request');
await page.keyboard.press('Control+A');
await page.keyboard.type('{"a": 2, "b": 40}');
await page.keyboard.press('Tab');
assert.equal(await focused(), 'call-go');
await page.keyboard.press('Enter');
await text(page, 'call-response', /"sum": 42/);
await text(page, 'call-done', /^\/add answered in/);
await page.screenshot({ path: `${shots}/call-light.png` });
await page.locator('#call-request').fill('{"a": "two"}');
await page.locator('#call-go').click();
await text(page, 'call-wrong', /found/);
await page.locator('#call-service').fill('/nobody');
await page.locator('#call-request').fill('{}');
await page.locator('#call-go').click();
await text(page, 'call-wrong', /service \/nobody does not exist/);
done('calls, by the keyboard');

// For everybody, in light and dark.
for (const scheme of ['light', 'dark']) {
  await page.emulateMedia({ colorScheme: scheme });
  for (const name of TABS) {
    await tab(page, name);
    if (name === 'topics') await page.getByRole('button', { name: '/wave' }).click();
    await accessible(page, `${name}, ${scheme}`);
    if (scheme === 'dark') await page.screenshot({ path: `${shots}/${name}-dark.png` });
  }
}
await page.emulateMedia({ colorScheme: 'light' });
await page.locator('#scheme').click();
assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(18, 22, 28)');
await page.locator('#scheme').click();
done('accessible in light and dark');

// On a phone, held upright.
const phone = await open(port, { viewport: { width: 360, height: 780 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
await connected(phone);
for (const name of TABS) {
  await phone.locator(`#tab-${name}`).tap();
  if (name === 'topics') await phone.getByRole('button', { name: '/chatter' }).tap();
  if (name === 'picture') {
    await until(phone, () => document.getElementById('picture-topic').options.length > 3);
    await phone.locator('#picture-topic').selectOption('/camera/image');
    await until(phone, () => document.getElementById('picture-canvas').width === 320);
  }
  if (name === 'plot') {
    await phone.locator('#plot-topic').fill('/wave');
    await phone.locator('#plot-field').fill('x');
    await phone.getByRole('button', { name: 'Add line' }).tap();
    await until(phone, () => Number(document.querySelector('#plot-lines td:nth-child(4)')?.textContent) > 0.99);
  }
  if (name === 'routes') {
    const bar = group(phone, '/wave');
    await bar.getByRole('button', { name: 'cyclonedds', exact: true }).tap();
    await saying(bar, /→ cyclonedds: the user has set it; .*median/);
    await phone.locator('#engines-rows tr.process').first().waitFor();
  }
  if (name === 'publish') await fill(phone, 'publish-topic', '/chatter');
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is too wide`);
  await accessible(phone, `${name}, phone`);
  await phone.screenshot({ path: `${shots}/${name}-phone.png`, fullPage: true });
}
await phone.context().close();
done('on a phone');

// For whoever wants things to stand still a plot goes on in steps.
const still = await open(port, { reducedMotion: 'reduce' });
await connected(still);
await tab(still, 'plot');
await still.locator('#plot-topic').fill('/wave');
await until(still, () => document.getElementById('known-topics').children.length > 0);
await still.locator('#plot-field').fill('z');
await still.getByRole('button', { name: 'Add line' }).click();
await until(still, () => document.querySelector('#plot-lines td:nth-child(4)')?.textContent === '1');
await still.context().close();
done('without motion');

// Who has no token is asked for one. This bridge is reached by TLS, and deflates.
const guarded = await open(guardedPort, { ignoreHTTPSErrors: true }, 'https');
await text(guarded, 'state', /^token needed$/);
await guarded.locator('#token-input').fill('open');
await guarded.keyboard.press('Enter');
await text(guarded, 'token-wrong', /^Wrong token\.$/);
await accessible(guarded, 'token');
await guarded.screenshot({ path: `${shots}/token-light.png` });
await guarded.locator('#token-input').fill('sesame');
await guarded.getByRole('button', { name: 'Go on' }).click();
await connected(guarded);
assert.ok(await guarded.locator('#token').isHidden());
await until(guarded, () => document.getElementById('topics-rows').textContent.includes('/chatter'));
assert.match(extensions.get(guarded), /^permessage-deflate;/);
await tab(guarded, 'picture');
await until(guarded, () => [...document.getElementById('picture-topic').options].some((it) => it.value === '/camera/image'));
await guarded.locator('#picture-topic').selectOption('/camera/image');
await until(guarded, () => document.getElementById('picture-canvas').width === 320);
assert.deepEqual(await pixel(guarded, 0, 105), [84, 88, 95, 255]);
await guarded.reload();
await connected(guarded);
await guarded.context().close();
done('by a token, through TLS, deflated');

// A proxy may hand its path on: there WebSockets are beside the page too.
const below = await open(guardedPort, { ignoreHTTPSErrors: true }, 'https', '/ws');
assert.equal(new URL(below.url()).pathname, '/ws/');
await text(below, 'state', /^token needed$/);
await below.context().close();
done('below a path');

// A recording is played, and controlled: by the pointer, by the keyboard, and on a phone.
assert.ok(await page.locator('#playback').isHidden());
const film = await open(playedPort);
await text(film, 'playback-status', /^paused$/);
await text(film, 'playback-at', /^0:00 of 1:40$/);
await film.locator('#playback-rate').selectOption('2');
await film.getByLabel('Recording').getByRole('button', { name: 'Play' }).click();
await text(film, 'playback-status', /^playing$/);
await text(film, 'playback-at', /^0:0[1-9] of 1:40$/);
await film.getByRole('button', { name: /^\/numbers$/ }).click();
await text(film, 'topic-message', /"number": \d+/);
await accessible(film, 'a recording');
await film.screenshot({ path: `${shots}/recording-light.png` });
await film.getByRole('slider', { name: 'Time of the recording' }).focus();
await film.keyboard.press('End');
await text(film, 'playback-status', /^ended$/);
await text(film, 'playback-at', /^1:40 of 1:40$/);
await text(film, 'topic-message', /"number": 100/);
await film.keyboard.press('Home');
await text(film, 'playback-at', /^0:0[0-9] of 1:40$/);
await film.getByLabel('Recording').getByRole('button', { name: 'Pause' }).click();
await text(film, 'playback-status', /^paused$/);
await film.context().close();
const small = await open(playedPort, { viewport: { width: 360, height: 780 }, isMobile: true, hasTouch: true });
await text(small, 'playback-status', /^paused$/);
assert.ok(await small.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
await small.screenshot({ path: `${shots}/recording-phone.png` });
await small.context().close();
done('a recording');

// The bridge goes and comes back.
await tab(page, 'topics');
const isOpen = await page.locator('#topic').isVisible();
assert.ok(isOpen);
mayFail = true;
console.log('the bridge may go');
await text(page, 'state', /^not connected, trying again$/);
await text(page, 'stale', /^Stale: these figures are of .+\./);
await accessible(page, 'stale');
await page.screenshot({ path: `${shots}/lost-light.png` });
console.log('it is seen to have gone');
await connected(page);
await until(page, () => document.getElementById('stale').hidden);
mayFail = false;
await page.evaluate(() => { document.getElementById('topic-message').textContent = ''; });
await text(page, 'topic-message', /"z": 1/);
done('comes back by itself');

await browser.close();
assert.deepEqual(complaints, []);
console.log('all done');
