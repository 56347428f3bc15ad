import { describe, expect, it } from 'vitest';
import { judgeServer, type ServerAnswers } from '../../src/platform/database/mongodb-server.js';

const PRIMARY = { isWritablePrimary: true, maxWireVersion: 21 };
const REPLICA_SET = { ...PRIMARY, setName: 'rs0', hosts: ['a:27017', 'b:27017', 'c:27017'] };

interface Given {
  hello: ServerAnswers['hello'];
  version?: string;
  compatibilityVersion?: string;
  modules?: string[];
  /** What the server tells of its own making. */
  made?: Omit<ServerAnswers['build'], 'version' | 'modules'>;
}

const MONGODB = { javascriptEngine: 'mozjs', allocator: 'tcmalloc' };

const judge = ({ hello, version = '7.0.14', compatibilityVersion, modules = [], made = MONGODB }: Given) =>
  judgeServer({ hello, build: { version, modules, ...made }, compatibilityVersion: compatibilityVersion ?? null });

describe('a MongoDB that bsvc works with as it is', () => {
  it.each<[string, Given, string]>([
    [
      'a replica set',
      { hello: REPLICA_SET, compatibilityVersion: '7.0' },
      'MongoDB 7.0.14, replica set rs0 with 3 members',
    ],
    [
      'a replica set of one',
      { hello: { ...REPLICA_SET, hosts: ['a:27017'] } },
      'MongoDB 7.0.14, replica set rs0 with 1 member',
    ],
    [
      'three members with data and arbiters',
      { hello: { ...REPLICA_SET, arbiters: ['d:27017', 'e:27017'] } },
      'MongoDB 7.0.14, replica set rs0 with 3 members',
    ],
    ['a router', { hello: { ...PRIMARY, msg: 'isdbgrid' } }, 'MongoDB 7.0.14, sharded cluster'],
    ['a load balancer', { hello: { ...PRIMARY, serviceId: 'x' } }, 'MongoDB 7.0.14, sharded cluster'],
    [
      'the oldest version that will do',
      { hello: { ...REPLICA_SET, maxWireVersion: 17 }, version: '6.0.0', compatibilityVersion: '6.0' },
      'MongoDB 6.0.0, replica set rs0 with 3 members',
    ],
    [
      'a version of tomorrow',
      { hello: { ...REPLICA_SET, maxWireVersion: 40 }, version: '10.1.0', compatibilityVersion: '10.0' },
      'MongoDB 10.1.0, replica set rs0 with 3 members',
    ],
    [
      'the wire transport of another bsvc',
      { hello: PRIMARY, modules: ['bsvc embedded engine'] },
      'the embedded engine of another bsvc, by the wire protocol',
    ],
  ])('%s', (_what, given, summary) => {
    expect(judge(given)).toMatchObject({ refusal: null, warnings: [], summary });
  });
});

describe('a server that is not MongoDB itself', () => {
  it.each<[string, Given, string]>([
    [
      'is named when it names itself',
      { hello: REPLICA_SET, made: { ...MONGODB, ferretdb: { version: 'v2.5.0' } } },
      'FerretDB, compatible with MongoDB 7.0.14, replica set rs0 with 3 members',
    ],
    [
      'is told from it by what it does not tell',
      { hello: REPLICA_SET, made: {} },
      'a server that is compatible with MongoDB 7.0.14, replica set rs0 with 3 members',
    ],
  ])('%s, with a warning', (_what, given, summary) => {
    const warnings = [expect.stringMatching(/without being one/)];
    expect(judge(given)).toMatchObject({ refusal: null, summary, warnings });
  });
});

describe('a MongoDB that bsvc works with and warns about', () => {
  it.each<[string, Given, RegExp]>([
    [
      'two members with an arbiter',
      { hello: { ...REPLICA_SET, hosts: ['a:27017', 'b:27017'], arbiters: ['c:27017'] } },
      /arbiter and only two members/,
    ],
    [
      'an upgrade that was not finished',
      { hello: REPLICA_SET, version: '7.0.14', compatibilityVersion: '6.0' },
      /works as version 6\.0.*featureCompatibilityVersion to 7\.0/,
    ],
  ])('%s', (_what, given, warning) => {
    expect(judge(given)).toMatchObject({ refusal: null, warnings: [expect.stringMatching(warning)] });
  });
});

describe('a MongoDB that bsvc cannot work with', () => {
  it.each<[string, Given, RegExp]>([
    ['5.0', { hello: { ...REPLICA_SET, maxWireVersion: 13 }, version: '5.0.31' }, /MongoDB 5\.0\.31.*6\.0 or newer/],
    [
      '6.0 that works as 5.0',
      { hello: { ...REPLICA_SET, maxWireVersion: 17 }, version: '6.0.19', compatibilityVersion: '5.0' },
      /setFeatureCompatibilityVersion: "6\.0"/,
    ],
    [
      'a secondary',
      { hello: { ...REPLICA_SET, isWritablePrimary: false, secondary: true } },
      /secondary.*directConnection/,
    ],
    ['a standalone', { hello: PRIMARY }, /standalone.*"mongod --replSet rs0".*'rs\.initiate\(\)'/],
    ['an arbiter', { hello: { ...REPLICA_SET, isWritablePrimary: false, arbiterOnly: true } }, /arbiter/],
    ['a set without a primary', { hello: { ...REPLICA_SET, isWritablePrimary: false } }, /has a primary/],
    ['one that was started read-only', { hello: { ...PRIMARY, readOnly: true } }, /read-only/],
    ['one that says nothing', { hello: {} }, /6\.0 or newer/],
  ])('%s', (_what, given, refusal) => {
    expect(judge(given).refusal).toMatch(refusal);
  });
});
