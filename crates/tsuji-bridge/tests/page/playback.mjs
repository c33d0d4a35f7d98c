// Where a recording is by what the bridge told of it. Called with the folder of the page.
import assert from 'node:assert/strict';

const { position, span } = await import(`${process.argv[2]}/playback.js`);

const told = { status: 'playing', time: 1002, start: 1000, end: 1010, rate: 2 };
assert.equal(position(told, 0), 1002);
assert.equal(position(told, 1.5), 1005);
assert.equal(position(told, 100), 1010);
assert.equal(position({ ...told, status: 'paused' }, 1.5), 1002);
assert.equal(position({ ...told, time: 900 }, 0), 1000);
assert.deepEqual([0, 59.9, 60, 3725, -1].map(span), ['0:00', '0:59', '1:00', '62:05', '0:00']);
console.log('all done');
