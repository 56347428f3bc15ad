import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { signAccessToken } from '../world/users.js';
import { buildCollection, buildProject, placeDocuments } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

interface CursorBody {
  data: { nextCursor: string | null };
}

const test = await useTestApp();
const shop = await buildProject(test.app);

const get = (path: string, key = shop.publishable) =>
  request(test.server).get(`/api/data/${path}`).set('x-api-key', key);

describe('the cursor of a list', () => {
  it('is refused to another reader, whom its total would tell what they may not read', async () => {
    const name = 'diaries';
    const diaries = await buildCollection(test.app, shop.project, {
      name,
      rls: { mode: 'private', ownerField: 'userId' },
    });
    const users = ['a'.repeat(24), 'b'.repeat(24)];
    const readers = [...users, null].map((userId) => ({
      page: (query: string) =>
        userId === null
          ? get(`${name}?limit=2&${query}`, shop.secret)
          : get(`${name}?limit=2&${query}`).set(
              'authorization',
              `Bearer ${signAccessToken(test.app, shop.project, userId, 60_000)}`,
            ),
    }));
    for (const userId of users) await placeDocuments(test.app, diaries, [{ userId }, { userId }, { userId }]);
    for (const reader of readers) {
      const { nextCursor } = ((await reader.page('cursor=start').expect(200)).body as CursorBody).data;
      for (const other of readers) {
        const { status, body } = await other.page(`cursor=${nextCursor}`);
        const said = [status, (body as { code?: string }).code];
        expect(said).toEqual(other === reader ? [200, undefined] : [400, 'INVALID_CURSOR']);
      }
    }
  });

  it('is refused with another sort, filter or collection', async () => {
    const items = await buildCollection(test.app, shop.project, {
      name: 'items',
      fields: [
        { name: 'price', type: 'Number' },
        { name: 'live', type: 'Boolean' },
      ],
    });
    await placeDocuments(test.app, items, [{ price: 1 }, { price: 2 }]);
    const { nextCursor } = ((await get('items?cursor=start&limit=1').expect(200)).body as CursorBody).data;
    await buildCollection(test.app, shop.project, { name: 'others' });
    for (const path of [`items?sort=price`, `items?live=true`, `items?include_deleted=true`, `others?a=1`]) {
      const { body } = await get(`${path}&cursor=${nextCursor}`).expect(400);
      expect(body.code).toBe('INVALID_CURSOR');
    }
    await get(`items?cursor=${nextCursor}`).expect(200);
  });
});
