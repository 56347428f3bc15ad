import { ObjectId } from 'bson';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';
import { READ_MATRIX, signBearers, type ReadOperation, type Visible } from './access-matrix.js';

const USER = new ObjectId().toHexString();
const ANOTHER = new ObjectId().toHexString();
const TRASHED = { isDeleted: true, deletedAt: new Date() };

const ids: Record<string, Record<string, string>> = {};

const test = await useTestApp();
const owner = await buildProject(test.app);
const stranger = await buildProject(test.app);
for (const rls of ['off', 'public-read', 'private'] as const) {
  for (const { project } of [owner, stranger]) {
    const collection = await buildCollection(test.app, project, {
      name: rls,
      fields: [
        { name: 'title', type: 'String', required: true },
        { name: 'userId', type: 'String' },
      ],
      rls: rls === 'off' ? null : { mode: rls, ownerField: 'userId' },
    });
    const documents = [
      { title: 'mine', userId: USER },
      { title: 'theirs', userId: ANOTHER },
      { title: 'my trash', userId: USER, ...TRASHED },
      { title: 'their trash', userId: ANOTHER, ...TRASHED },
    ];
    const placed = await placeDocuments(test.app, collection, documents);
    if (project === owner.project)
      ids[rls] = Object.fromEntries(documents.map(({ title }, at) => [title, placed[at]!]));
  }
  const refs = await buildCollection(test.app, owner.project, {
    name: `refs-${rls}`,
    fields: [{ name: 'to', type: 'Array', items: { type: 'Ref', ref: rls } }],
  });
  await placeDocuments(test.app, refs, [{ to: Object.values(ids[rls]!) }]);
}
const tokens = signBearers(test.app, owner.project, stranger.project, USER);

interface Attempt {
  path: string;
  pipeline?: object[];
}

const DELETED = 'include_deleted=true';

function prepare(operation: ReadOperation, rls: string): Attempt {
  const id = ids[rls]!;
  switch (operation) {
    case 'list':
      return { path: rls };
    case 'list by cursor':
      return { path: `${rls}?cursor=start` };
    case 'list with the trash':
      return { path: `${rls}?${DELETED}` };
    case 'filter by owner':
      return { path: `${rls}?userId=${ANOTHER}` };
    case 'count':
      return { path: `${rls}?count=true` };
    case 'get mine':
      return { path: `${rls}/${id.mine}` };
    case 'get theirs':
      return { path: `${rls}/${id.theirs}` };
    case 'get my trash':
      return { path: `${rls}/${id['my trash']}` };
    case 'get my trash, asked for':
      return { path: `${rls}/${id['my trash']}?${DELETED}` };
    case 'get their trash, asked for':
      return { path: `${rls}/${id['their trash']}?${DELETED}` };
    case 'aggregate':
      return { path: `${rls}/aggregate`, pipeline: [{ $project: { title: 1 } }] };
    case 'aggregate with the trash':
      return { path: `${rls}/aggregate?${DELETED}`, pipeline: [{ $project: { title: 1 } }] };
    case 'join':
      return {
        path: `refs-${rls}/aggregate`,
        pipeline: [{ $lookup: { from: rls, localField: 'to', foreignField: '_id', as: 'to' } }],
      };
    case 'union':
      return { path: `refs-${rls}/aggregate`, pipeline: [{ $unionWith: rls }] };
    case 'populate':
      return { path: `refs-${rls}?populate=to` };
    case 'populate with the trash':
      return { path: `refs-${rls}?populate=to&${DELETED}` };
  }
}

/** The titles anywhere in a reply, or the number that was counted. */
function titlesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(titlesIn);
  if (typeof value !== 'object' || value === null) return [];
  const { title, count, ...others } = value as Record<string, unknown>;
  const own = title ?? count;
  return [...(own === undefined ? [] : [String(own)]), ...Object.values(others).flatMap(titlesIn)];
}

describe.each(READ_MATRIX.flatMap(({ bearers, ...row }) => bearers.map((bearer) => ({ bearer, ...row }))))(
  'RLS $rls, $key key, bearer: $bearer',
  ({ rls, key, bearer, outcomes }) => {
    it.each(Object.entries(outcomes) as [ReadOperation, Visible][])('%s: %j', async (operation, visible) => {
      const { path, pipeline } = prepare(operation, rls);
      const call = request(test.server)[pipeline ? 'post' : 'get'](`/api/data/${path}`).set('x-api-key', owner[key]);
      if (tokens[bearer]) void call.set('authorization', `Bearer ${tokens[bearer]}`);
      const { status, body } = pipeline ? await call.send({ pipeline }) : await call;
      const [first] = visible;
      if (typeof first === 'number') expect([status, body.code]).toEqual(visible);
      else expect([status, ...titlesIn(body).sort()]).toEqual([200, ...visible]);
    });
  },
);
