import { ObjectId } from 'bson';
import { signAccessToken } from '../../src/features/access/sign-access-token.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import type { Collection } from '../../src/features/collections/collection.js';
import type { StoredDocument } from '../../src/features/documents/store/document.js';
import { changeDocumentRecord, removeDocumentRecord } from '../../src/features/documents/store/document-store.js';
import { insertDocumentRecord } from '../../src/features/documents/write/insert-document.js';
import { buildProject, storedDocuments, type TestProject } from './build-project.js';
import type { TestApp } from './open-test-app.js';
import type { Random } from './random.js';

export const BOARDS = Array.from({ length: 8 }, (_, n) => `b${n}`);

type Row = StoredDocument & { board?: string; user?: string; role?: string; visibility?: string; n?: number };

/** Cards of boards, and who is a member of which; written as the secret key does, past all rules. */
export interface MemberWorld {
  owner: TestProject;
  userIds: readonly string[];
  headers(userId: string | null): Record<string, string>;
  /** What a user is to be shown by the rule, said without the product's code. */
  expected(userId: string | null): Promise<Map<string, number>>;
  /** One random change of a card or a membership. */
  change(random: Random): Promise<void>;
  cards: Collection;
  members: Collection;
}

/** The rule `read` that MemberWorld.expected says in another way. */
export const MEMBERS_READ =
  'doc.visibility = "public" or doc.board in members[user = user.id and role in ["viewer", "editor"]].board';

/** A new document as it is stored. */
export function newRecord(fields: object): StoredDocument {
  const at = new Date();
  const times = { isDeleted: false, deletedAt: null, createdAt: at, updatedAt: at };
  return { _id: new ObjectId(), ...fields, ...times } as StoredDocument;
}

export async function buildMemberWorld(test: Pick<TestApp, 'app'>): Promise<MemberWorld> {
  const { app } = test;
  const owner = await buildProject(app);
  const { project } = owner;
  const text = (name: string) => ({ name, type: 'String' as const });
  const { collection: members } = await addCollection(app, project, {
    name: 'members',
    fields: ['board', 'user', 'role'].map(text),
    rules: 'server-only',
    changes: { on: true },
  });
  const { collection: cards } = await addCollection(app, project, {
    name: 'cards',
    fields: [...['board', 'visibility', 'pad'].map(text), { name: 'n', type: 'Number' }],
    rules: { read: MEMBERS_READ },
    changes: { on: true },
  });
  const userIds = Array.from({ length: 3 }, () => new ObjectId().toHexString());
  const rows = (collection: Collection) => storedDocuments(app, collection);
  const all = async (collection: Collection): Promise<Row[]> =>
    await rows(collection)
      .find({ isDeleted: { $in: [true, false] } })
      .toArray();
  const insert = async (collection: Collection, fields: object): Promise<void> => {
    await insertDocumentRecord(app, collection, newRecord(fields));
  };
  const card = (random: Random) => ({
    board: random.pick(BOARDS),
    visibility: random.chance(0.1) ? 'public' : 'team',
    n: random.below(1_000_000),
    pad: 'x'.repeat(random.chance(0.5) ? 5 : 700),
  });
  const member = (random: Random) => ({
    board: random.pick(BOARDS),
    user: random.pick(userIds),
    role: random.pick(['viewer', 'editor', 'asked']),
  });
  return {
    owner,
    userIds,
    cards,
    members,
    headers: (userId) => ({
      'x-api-key': owner.publishable,
      ...(userId && { authorization: `Bearer ${signAccessToken(app, project, userId, 600_000)}` }),
    }),
    async expected(userId) {
      const isMine = ({ user, role, isDeleted }: Row): boolean =>
        user === userId && isDeleted === false && (role === 'viewer' || role === 'editor');
      const boards = new Set((await all(members)).filter(isMine).map(({ board }) => board));
      const shown = (await all(cards)).filter(
        ({ board, visibility, isDeleted }) => isDeleted === false && (visibility === 'public' || boards.has(board)),
      );
      return new Map(shown.map(({ _id, n }) => [_id.toHexString(), n!]));
    },
    async change(random) {
      const collection = random.chance(0.5) ? cards : members;
      const known = await all(collection);
      const kind = random.below(10);
      if (known.length < 6 || kind < 3) {
        await insert(collection, collection === cards ? card(random) : member(random));
        return;
      }
      const { _id, isDeleted } = random.pick(known);
      // A document that waits for its event to be told is removed already.
      const filter = { _id, isDeleted };
      if (kind === 3) await removeDocumentRecord(app, collection, _id);
      else if (kind === 4) {
        await changeDocumentRecord(app, collection, filter, { isDeleted: isDeleted !== true });
      } else {
        const set = collection === cards ? card(random) : member(random);
        await changeDocumentRecord(app, collection, filter, set);
      }
    },
  };
}
