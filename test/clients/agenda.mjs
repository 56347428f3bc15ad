import { once } from 'node:events';
import { Agenda } from 'agenda';
import { same, uri, works } from './steps.mjs';

const agenda = new Agenda({ db: { address: `${uri}/agenda`, collection: 'jobs' }, processEvery: 50 });
let ran = 0;
agenda.define('count', () => void ran++);
agenda.define('break', () => {
  throw new Error('broken');
});

await works('start', () => agenda.start());
await works('run now, at a time, again and again', async () => {
  const done = new Promise((resolve) => agenda.on('success:count', () => ran >= 3 && resolve()));
  await agenda.now('count');
  await agenda.schedule(new Date(Date.now() + 100), 'count');
  await agenda.every('200 milliseconds', 'count');
  await done;
});
await works('record what failed', async () => {
  const failed = once(agenda, 'fail:break');
  await agenda.now('break');
  await failed;
});
await works('find and cancel jobs', async () => {
  if ((await agenda.jobs({ name: 'count' })).length === 0) throw new Error('no jobs');
  await agenda.cancel({ name: 'count' });
  same((await agenda.jobs({ name: 'count' })).length, 0);
});
await works('stop', () => agenda.stop());
process.exit(0);
