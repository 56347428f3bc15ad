import { MongoClient } from 'mongodb';
import { judgeServer, type ServerAnswers } from '../../src/platform/database/mongodb-server.js';

/** Says at the end of a run which server BSVC_TEST_MONGODB_URI has led to; a run cannot begin without it. */
export default async function tellServer(): Promise<(() => void) | undefined> {
  const uri = process.env.BSVC_TEST_MONGODB_URI;
  if (uri === undefined) return undefined;
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 5_000 });
  const admin = client.db('admin');
  const hello = (await admin.command({ hello: 1 })) as ServerAnswers['hello'];
  const build = (await admin.command({ buildInfo: 1 })) as ServerAnswers['build'];
  await client.close();
  const hosts = client.options.hosts.join(', ');
  const { summary } = judgeServer({ hello, build, compatibilityVersion: null });
  return () => console.log(`The tests of the API ran on ${summary} (${hosts}).`);
}
