// A client with roslib: publishes and subscribes in every form, serves and calls, and asks rosapi. Says a line for each.
// `scripts/web-clients` puts it beside the package.
import * as ROSLIB from 'roslib';
import WebSocket from 'ws';

const [port] = process.argv.slice(2);

// Waits for what `begin` hands a callback; nothing is expected to take any part of the time.
const heard = (what, begin) => new Promise((done, failed) => {
  const watchdog = setTimeout(() => failed(new Error(`${what}: nothing came`)), 60_000);
  begin((it) => { clearTimeout(watchdog); done(it); }, (error) => failed(new Error(`${what}: ${error}`)));
});

const ros = new ROSLIB.Ros({ url: `ws://127.0.0.1:${port}` });
await heard('connection', (done) => ros.on('connection', done));

for (const compression of ['none', 'cbor', 'png']) {
  const name = `/from_${compression}`;
  const topic = new ROSLIB.Topic({ ros, name, messageType: 'std_msgs/String', compression });
  const message = heard(name, (done) => topic.subscribe(done));
  topic.publish({ data: `hello ${compression} \u{1f980}` });
  console.log((await message).data);
  topic.unsubscribe();
}

// What is latched comes to each client, whenever it comes.
const map = new ROSLIB.Topic({ ros, name: '/map', messageType: 'std_msgs/String', latch: true, queue_size: 1 });
map.publish({ data: 'one' });
const clients = [];
for (let at = 0; at < 3; at += 1) {
  const client = new ROSLIB.Ros({ url: `ws://127.0.0.1:${port}` });
  await heard('connection', (done) => client.on('connection', done));
  const topic = new ROSLIB.Topic({ ros: client, name: '/map', messageType: 'std_msgs/String', throttle_rate: 100, queue_length: 1 });
  clients.push((await heard('/map', (done) => topic.subscribe(done))).data);
}
console.log(`latched ${clients.join(' ')}`);

// As clients of Unity and .NET do: JSON in binary frames.
const binary = new WebSocket(`ws://127.0.0.1:${port}`);
await heard('open', (done) => binary.on('open', done));
const answer = heard('answer', (done) => binary.on('message', (data, isBinary) => done([JSON.parse(data), isBinary])));
binary.send(Buffer.from(`\ufeff${JSON.stringify({ op: 'call_service', id: 'b', service: '/rosapi/get_ros_version' })}`));
const [{ id, result, values }, isBinary] = await answer;
console.log(`binary ${id} ${result} ${values.version} ${isBinary}`);
binary.close();

const service = { ros, name: '/add', serviceType: 'example_interfaces/AddTwoInts' };
const server = new ROSLIB.Service(service);
server.advertise((request, response) => {
  response.sum = request.a + request.b;
  return true;
});
// Who asks too early is told that nobody serves, and asks again.
const add = () => heard('add', (done) =>
  new ROSLIB.Service(service).callService({ a: 1, b: 2 }, (it) => done(it.sum), () => done(undefined)));
let sum;
while (sum === undefined) {
  sum = await add();
}
console.log(`sum ${sum}`);
const missing = new ROSLIB.Service({ ros, name: '/nobody', serviceType: 'std_srvs/Trigger' });
console.log(await heard('nobody', (done) => missing.callService({}, () => done('answered'), done)));

const { topics } = await heard('topics', (done, failed) => ros.getTopics(done, failed));
console.log(`topics ${topics.includes('/from_none')}`);
const params = await heard('params', (done, failed) => ros.getParams(done, failed));
console.log(`params ${Array.isArray(params)}`);
const details = await heard('details', (done, failed) => ros.getMessageDetails('geometry_msgs/Twist', done, failed));
console.log(JSON.stringify(ros.decodeTypeDefs(details).linear));
ros.close();
process.exit(0);
