// A client with Foxglove's own packages: reads and writes messages and requests by the definitions that the bridge sends, sets and follows
// parameters, and asks who has to do with what. Says a line for each. `scripts/web-clients` puts it beside the packages.
import protocol from '@foxglove/ws-protocol';
import { parse } from '@foxglove/rosmsg';
import { MessageReader, MessageWriter } from '@foxglove/rosmsg2-serialization';
import WebSocket from 'ws';

const [port, subprotocol] = process.argv.slice(2);
const { FoxgloveClient } = protocol;

// Nothing is expected to take any part of it.
const watchdog = setTimeout(() => { console.log('nothing came'); process.exit(1); }, 60_000);

const ws = new WebSocket(`ws://127.0.0.1:${port}`, [subprotocol]);
const client = new FoxgloveClient({ ws });
client.on('error', (error) => { console.log(`error ${error}`); process.exit(1); });

// What is there, and who waits for more of it.
const channels = new Map();
const services = new Map();
const waiting = new Set();
const look = () => waiting.forEach((it) => it());
const until = (find) => new Promise((done) => {
  const again = () => {
    const found = find();
    if (found) {
      waiting.delete(again);
      done(found);
    }
  };
  waiting.add(again);
  again();
});
client.on('advertise', (all) => { all.forEach((it) => channels.set(it.topic, it)); look(); });
client.on('unadvertise', (all) => {
  for (const [topic, it] of channels) if (all.includes(it.id)) channels.delete(topic);
  look();
});
client.on('advertiseServices', (all) => { all.forEach((it) => services.set(it.name, it)); look(); });
const next = (event, is = () => true) => new Promise((done) => {
  const listener = (it) => { if (is(it)) { client.off(event, listener); done(it); } };
  client.on(event, listener);
});
const definitions = (schema) => parse(schema, { ros2: true });
const reads = (schema, data) => new MessageReader(definitions(schema)).readMessage(data);
const writes = (schema, message) => new MessageWriter(definitions(schema)).writeMessage(message);

const info = await next('serverInfo');
console.log(ws.protocol, info.name.split(' ').slice(0, 2).join(' '), info.supportedEncodings.join(' '));

// What somebody else publishes.
const chatter = await until(() => channels.get('/chatter'));
const heard = next('message', (it) => it.subscriptionId === subscription);
const subscription = client.subscribe(chatter.id);
console.log('heard', reads(chatter.schema, (await heard).data).data);
client.unsubscribe(subscription);

// Pictures.
const pictures = await until(() => [...channels.values()].find((it) => it.schemaName === 'sensor_msgs/msg/Image'));
const seen = next('message', (it) => it.subscriptionId === toPictures);
const toPictures = client.subscribe(pictures.id);
const picture = reads(pictures.schema, (await seen).data);
console.log('picture', picture.data.length === picture.step * picture.height && picture.height > 0);
client.unsubscribe(toPictures);

// What it publishes itself, of a type with much in it.
const schemaName = 'geometry_msgs/msg/PoseStamped';
const own = client.advertise({ topic: '/goal', encoding: 'cdr', schemaName });
const goal = await until(() => channels.get('/goal'));
const pose = {
  header: { stamp: { sec: 7, nanosec: 8 }, frame_id: 'map' },
  pose: { position: { x: 1.5, y: -2, z: 0 }, orientation: { x: 0, y: 0, z: 0, w: 1 } },
};
const back = next('message', (it) => it.subscriptionId === toGoal);
const toGoal = client.subscribe(goal.id);
// Until the subscription is there.
const said = setInterval(() => client.sendMessage(own, writes(goal.schema, pose)), 100);
const { header, pose: { position } } = reads(goal.schema, (await back).data);
clearInterval(said);
console.log('back', header.frame_id, header.stamp.sec, position.x, position.y);
client.unadvertise(own);

// A service, by the definitions of both halves.
const list = await until(() => services.get('/camera/get_parameters'));
const answer = next('serviceCallResponse', (it) => it.callId === 5);
const data = writes(list.request.schema, { names: ['use_sim_time'] });
client.sendServiceCallRequest({ serviceId: list.id, callId: 5, encoding: 'cdr', data: new DataView(data.buffer, data.byteOffset, data.byteLength) });
const { values } = reads(list.response.schema, (await answer).data);
console.log('called', values.map((it) => it.type).join(' '));
const failure = next('serviceCallFailure');
client.sendServiceCallRequest({ serviceId: 4_000_000, callId: 6, encoding: 'cdr', data: new DataView(new ArrayBuffer(0)) });
console.log('failed', (await failure).callId);

// Parameters.
const ask = (id) => next('parameterValues', (it) => it.id === id);
client.getParameters(['/camera.use_sim_time'], 'one');
console.log('parameter', JSON.stringify((await ask('one')).parameters));
client.subscribeParameterUpdates(['/camera.use_sim_time']);
const changed = next('parameterValues', (it) => it.id == null);
client.setParameters([{ name: '/camera.use_sim_time', value: true }], 'two');
console.log('set', JSON.stringify((await ask('two')).parameters));
console.log('followed', JSON.stringify((await changed).parameters));

const graph = next('connectionGraphUpdate');
client.subscribeConnectionGraph();
console.log('graph', JSON.stringify((await graph).publishedTopics.find((it) => it.name === '/chatter')));
const asset = next('fetchAssetResponse');
client.fetchAsset('package://none/a.stl', 9);
const { requestId, error } = await asset;
console.log('asset', requestId, error);

clearTimeout(watchdog);
client.close();
