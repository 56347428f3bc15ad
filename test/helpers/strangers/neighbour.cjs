/*
 * Reads a small list of another project again and again, in a thread of its own, so that what the attackers do keeps it
 * from nothing. Told the address of the service and the key, it posts status and milliseconds of each read.
 */
const { Agent, request } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');

const PAUSE_MS = 20;
const agent = new Agent({ keepAlive: true });
let read = 0;

function readOnce() {
  const from = `192.168.${(read >> 8) & 255}.${read++ & 255}`;
  const begin = performance.now();
  const done = (status) => {
    parentPort.postMessage({ status, ms: performance.now() - begin });
    setTimeout(readOnce, PAUSE_MS);
  };
  const headers = { 'x-api-key': workerData.key, 'x-forwarded-for': from };
  const outgoing = request(`${workerData.url}/api/data/posts?limit=1&fields=_id`, { agent, headers }, (reply) => {
    reply.resume();
    reply.on('end', () => done(reply.statusCode));
  });
  outgoing.on('error', () => done(0));
  outgoing.end();
}
readOnce();
