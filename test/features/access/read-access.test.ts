import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { readAccess, readFilter } from '../../../src/features/access/access-rules.js';
import type { Caller } from '../../../src/features/access/caller.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';

const test = await useTestApp();
const owner = await buildProject(test.app);

const [ADA, BOB] = [new ObjectId().toHexString(), new ObjectId().toHexString()];
type Bearer = Caller['bearer'];
const userOf = (userId: string): Bearer => ({ state: 'user', userId, session: 's', level: 1 }) as Bearer;
const callerWith = (bearer: Bearer, type: 'publishable' | 'secret' = 'publishable'): Caller =>
  ({ project: owner.project, key: { type }, bearer }) as Caller;
const STRANGER: Bearer = { state: 'absent' };

const OWN = 'doc.owner = user.id';
const IN_GROUP = 'doc.board in members[user = user.id].board';
const ruled = async (read: string, remove: string): Promise<Collection> => ({
  ...(await buildCollection(test.app, owner.project)),
  rules: { read, create: 'nobody', update: 'nobody', delete: remove },
});
const ACTIVE = { isDeleted: false };

describe('what a user reads', () => {
  const mine = { owner: ADA };
  it.each([
    ['anyone', 'anyone', null, null],
    ['anyone', OWN, null, { $or: [ACTIVE, mine] }],
    ['anyone', 'nobody', null, ACTIVE],
    [OWN, 'anyone', mine, mine],
    [OWN, OWN, mine, { $and: [mine, { $or: [ACTIVE, mine] }] }],
    [OWN, 'nobody', mine, { $and: [mine, ACTIVE] }],
  ])('by the rule %s, where %s deletes, is %j, and with the trash %j', async (read, remove, active, all) => {
    const collection = await ruled(read, remove);
    const caller = callerWith(userOf(ADA));
    expect(await readFilter(test.app, collection, caller)).toEqual(active);
    expect(await readFilter(test.app, collection, caller, { trash: true })).toEqual(all);
    expect(await readFilter(test.app, collection, callerWith(STRANGER, 'secret'), { trash: true })).toBeNull();
  });

  it('under row-level security is the same in the trash', async () => {
    const rls = { mode: 'private' as const, ownerField: 'owner' };
    const collection = { ...(await buildCollection(test.app, owner.project)), rls };
    for (const trash of [false, true]) {
      expect(await readFilter(test.app, collection, callerWith(userOf(ADA)), { trash })).toEqual(mine);
    }
  });
});

describe('what a cursor is bound to', () => {
  const shapeOf = async (collection: Collection, userId: string, trash = false) =>
    (await readAccess(test.app, collection, callerWith(userOf(userId)), { trash })).shape;

  it('is the filter where rules name no set: whoever reads the same may go on with it', async () => {
    for (const [read, remove] of [
      ['anyone', 'nobody'],
      [OWN, 'anyone'],
    ] as const) {
      const collection = await ruled(read, remove);
      const access = await readAccess(test.app, collection, callerWith(userOf(ADA)));
      expect(access.shape).toEqual(access.filter);
    }
    const open = await ruled('anyone', 'nobody');
    expect(await shapeOf(open, ADA)).toEqual(await shapeOf(open, BOB));
  });

  it('is rule and caller where one of the rules names a set, whatever the set holds by then', async () => {
    await buildCollection(test.app, owner.project, { name: 'members' });
    const collection = await ruled(IN_GROUP, OWN);
    const access = await readAccess(test.app, collection, callerWith(userOf(ADA)), { trash: true });
    expect(access.shape).not.toEqual(access.filter);
    expect(await shapeOf(collection, ADA, true)).toEqual(access.shape);
    expect(await shapeOf(collection, BOB, true)).not.toEqual(access.shape);
    // Without the trash the rule that deletes is not asked.
    const deleting = await ruled(OWN, IN_GROUP);
    const plain = await readAccess(test.app, deleting, callerWith(userOf(ADA)));
    expect(plain.shape).toEqual(plain.filter);
    const withTrash = await readAccess(test.app, deleting, callerWith(userOf(ADA)), { trash: true });
    expect(withTrash.shape).not.toEqual(withTrash.filter);
  });
});

describe('who reads nothing', () => {
  const refused = async (collection: Collection, bearer: Bearer): Promise<string | null> => {
    try {
      await readAccess(test.app, collection, callerWith(bearer));
      return null;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  const BAD: Bearer = { state: 'invalid', code: 'TOKEN_EXPIRED' };

  it('is told by its token, or to sign in, only where the rule asks for somebody', async () => {
    const [open, own, nothing] = [
      await ruled('anyone', 'nobody'),
      await ruled(OWN, 'nobody'),
      await ruled('nobody', OWN),
    ];
    expect([await refused(open, STRANGER), await refused(open, BAD), await refused(open, userOf(ADA))]).toEqual([
      null,
      null,
      null,
    ]);
    expect([await refused(own, STRANGER), await refused(own, BAD), await refused(own, userOf(ADA))]).toEqual([
      'AUTH_REQUIRED',
      'TOKEN_EXPIRED',
      null,
    ]);
    for (const bearer of [STRANGER, BAD, userOf(ADA)]) expect(await refused(nothing, bearer)).toBe('READ_BLOCKED');
    const either = await ruled(`doc.shown = true or ${OWN}`, 'nobody');
    expect([await refused(either, STRANGER), await refused(either, BAD)]).toEqual([null, 'TOKEN_EXPIRED']);
    const enrol: Bearer = { state: 'invalid', code: 'MFA_ENROLMENT_REQUIRED', userId: ADA, session: 's' };
    expect(await refused(own, enrol)).toBe('MFA_ENROLMENT_REQUIRED');
  });
});
