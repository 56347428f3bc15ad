import { ObjectId } from 'bson';
import { describe, expect, it } from 'vitest';
import { collectionSchemas } from '../../../src/features/project-types/collection-schemas.js';
import { describeCollections } from '../../../src/features/project-types/described-project.js';
import { writeTypeFile } from '../../../src/features/project-types/type-file.js';
import type { Field } from '../../../src/features/collections/fields/field.js';
import { isFieldPath } from '../../../src/features/documents/store/find-field.js';
import { compile } from '../../helpers/compile.js';
import { estateCollections } from '../../helpers/estate.js';

const FILE = 'test/types.d.ts';

const write = (collections = estateCollections(), isPublic = false): Promise<string> =>
  writeTypeFile(describeCollections('shop', collections, { isPublic }));

/** A program of lines that all fit, and one line at a time that must not. */
const HEAD = `import type * as T from './types.js';
declare const id: string;
const user = { _id: id, email: '', emailVerified: true, createdAt: '', updatedAt: '' };
const system = { _id: id, isDeleted: false, deletedAt: null, createdAt: '', updatedAt: '' };
`;

const FITS = `
export const post: T.PostsDocument = {
  ...system, title: '', author: id, slug: '', views: 1, live: true, status: '', publishedAt: '', category: id,
  anything: id, gone: id, tags: [''], moments: [''], related: [id], mixed: [1, ''], free: { any: 1 },
  meta: { score: 1, editor: id, deep: { er: true } }, parts: [{ person: id }],
};
export const least: T.PostsDocument = { ...system, title: '', author: id, views: 0, live: false, status: '' };
export const sent: T.PostsInsert = { title: '', author: id, publishedAt: new Date(), moments: [new Date(), ''] };
export const changed: T.PostsUpdate = {
  title: '', slug: null, views: null, 'meta.score': 1, 'meta.deep.er': null, 'free.any.thing': [1], publishedAt: null,
};
export const populated: (keyof T.PostsRefs)[] = ['author', 'category', 'related', 'meta.editor', 'parts.person'];
export const target: T.PostsRefs['parts.person'] = 'people';
export const sorted: (keyof T.PostsFields)[] = ['_id', 'title', 'meta.score', 'createdAt', 'parts.person', 'free.x'];
export const free: T.Project['posts']['Open'] = 'free.any.thing';
export const closed: [T.Project['notes']['Open']] extends [never] ? true : false = true;
export const any: T.Project['loose']['Open'] = 'whatever';
export const note: T.NotesInsert = { text: '' };
export const owned: T.NotesDocument = { ...system, text: '', userId: id };
export const diary: T.DiariesInsert = {};
export const loose: T.LooseDocument = { ...system, whatever: [1] };
export const person: T.PeopleDocument2Of = { ...system, '1st': 1, 'full-name': '', "o'clock\`$": {}, naïve: '', class: '' };
export const clock: T.Project['people']['Update'] = { "o'clock\`$.hands": 2 };
export const account: T.UsersDocument = { ...user, name: '', role: '' };
export const newcomer: T.UsersInsert = { email: '', password: '', name: '' };
export const shown: T.UsersPublic = { _id: id, name: '' };
export const names: (keyof T.Project)[] = ['posts', 'people', 'People', 'my-posts', 'my_posts', 'users', 'constructor'];
`.replace('T.PeopleDocument2Of', "T.Project['people']['Document']");

const REFUSED = [
  'const x: T.PostsDocument = { ...system, author: id };',
  "const x: T.PostsDocument = { ...system, title: '', author: id };",
  'const x: T.PostsDocument = { ...system, title: 1, author: id };',
  "const x: T.PostsDocument = { ...system, title: '', author: id, slug: null };",
  "const x: T.PostsDocument = { ...system, title: '', author: id, publishedAt: new Date() };",
  'const x: T.PostsInsert = { author: id };',
  "const x: T.PostsInsert = { title: '', author: id, unknown: 1 };",
  "const x: T.PostsInsert = { title: '', author: id, views: '1' };",
  "const x: T.PostsInsert = { title: '', author: id, slug: null };",
  "const x: T.PostsInsert = { title: '', author: id, _id: id };",
  "const x: T.PostsInsert = { title: '', author: id, meta: {} };",
  "const x: T.PostsInsert = { title: '', author: id, tags: [1] };",
  'const x: T.PostsUpdate = { title: null };',
  "const x: T.PostsUpdate = { 'meta.score': null };",
  "const x: T.PostsUpdate = { 'meta.scores': 1 };",
  "const x: T.PostsUpdate = { createdAt: '' };",
  'const x: T.NotesUpdate = { userId: id };',
  'const x: T.DiariesUpdate = { owner: id };',
  "const x: keyof T.PostsRefs = 'gone';",
  "const x: keyof T.PostsRefs = 'anything';",
  "const x: keyof T.PostsRefs = 'title';",
  "const x: keyof T.PostsFields = 'unknown';",
  "const x: T.Project['posts']['Open'] = 'meta.score';",
  "const x: T.LooseInsert = { size: '1' };",
  "const x: T.UsersDocument = { ...user, password: '' };",
  "const x: T.UsersInsert = { email: '', password: '', role: '' };",
  "const x: T.UsersInsert = { email: '' };",
  "const x: T.UsersUpdate = { password: '' };",
  "const x: T.UsersPublic = { _id: id, email: '' };",
  "const x: keyof T.Project = 'nowhere';",
  "declare const d: T.PostsDocument; d._id = '';",
];

describe('types.d.ts', () => {
  it('says what documents of every field type and option are, and refuses what they are not', async () => {
    const mistakes = Object.fromEntries(
      REFUSED.map((line, at) => [`test/refused-${at}.ts`, `${HEAD}${line}\nexport {};\n`]),
    );
    const complaints = compile({ [FILE]: await write(), 'test/fits.ts': HEAD + FITS, ...mistakes });
    expect(complaints.filter((line) => !line.startsWith('test/refused-'))).toEqual([]);
    const refused = new Set(complaints.map((line) => Number(/refused-(\d+)/.exec(line)?.[1])));
    expect(REFUSED.filter((_, at) => !refused.has(at))).toEqual([]);
  });

  it('is the same whatever the order in which collections and fields were made', async () => {
    const turned = [...estateCollections()].reverse().map((each) => ({ ...each, fields: [...each.fields].reverse() }));
    expect(await write(turned)).toBe(await write());
  });

  it('tells a publishable key nothing of protected fields', async () => {
    expect(await write()).toMatch(/\brole\b/);
    expect(await write(estateCollections(), true)).not.toMatch(/\brole\b|[Pp]rotected/);
  });

  it('tells the rules of fields, and nothing that a default says ends the comment', async () => {
    const text = await write();
    expect(text).toContain('/** Required. Unique. */');
    expect(text).toContain('/** Default 0. */');
    expect(text).toContain('/** Default "*\\/ it\'s');
    expect(text).toContain('/** Id of a document of users. Required. */');
  });

  it('offers for filters, sorting and populating what a query can name, and nothing else', async () => {
    const names = ['plain', 'my-name', '_x', 'naïve', '日本', '1st', "it's", 'a*/b', 'semi;colon'];
    const [posts] = estateCollections();
    const fields: Field[] = [
      ...names.map((name) => ({ name, type: 'Ref' as const, ref: 'odd' })),
      { name: 'inside', type: 'Object', fields: names.map((name) => ({ name, type: 'Number' as const })) },
      { name: 'größe', type: 'Object' },
    ];
    const text = await write([{ ...posts!, name: 'odd', mode: 'enforced', fields, rls: null }]);
    const part = (name: string): string => new RegExp(`interface Odd${name} \\{\\n([^}]*)\\n\\}`).exec(text)![1]!;
    const members = (name: string): string[] =>
      part(name)
        .split('\n')
        .map((line) =>
          line
            .trim()
            .replace(/: [^:]*$/, '')
            .replaceAll("'", ''),
        );
    const named = names.filter(isFieldPath);
    expect(named).toHaveLength(3);
    const inside = names.map((name) => `inside.${name}`).filter(isFieldPath);
    const system = ['_id', 'createdAt', 'updatedAt'];
    expect(members('Fields').sort()).toEqual([...named, 'inside', ...inside, ...system].sort());
    expect(members('Refs').sort()).toEqual([...named].sort());
    expect(compile({ [FILE]: text })).toEqual([]);
  });

  it('stays in one file when the collections change: another text exactly when something was changed', async () => {
    const [first, ...rest] = estateCollections();
    const changed = { ...first!, fields: [...first!.fields, { name: 'added', type: 'String' as const }] };
    expect(await write([changed, ...rest])).not.toBe(await write());
    expect(await write([{ ...first!, _id: new ObjectId(), version: 9 }, ...rest])).toBe(await write());
  });
});

describe('constraints of fields', () => {
  const held = {
    ...estateCollections()[0]!,
    name: 'held',
    fields: [
      { name: 'level', type: 'Number', enum: [1, 2] },
      { name: 'price', type: 'Number', min: 0, integer: true },
      { name: 'roles', type: 'Array', items: { type: 'String', enum: ["o'clock", 'editor'] }, maxItems: 3 },
    ] satisfies Field[],
  };

  it('are unions where values are listed, and told in words', async () => {
    const text = await write([held]);
    expect(text).toContain("  roles?: ('o\\'clock' | 'editor')[];");
    expect(text).toContain('  level?: 1 | 2;');
    expect(text).toContain('  level?: 1 | 2 | null;');
    expect(text).toContain('/** At least 0. A whole number. */');
    expect(text).toContain('/** At most 3 items. */');
  });

  it('are keywords of JSON Schema, where an optional field may be null in a change too', () => {
    const [described] = describeCollections('shop', [held], { isPublic: false }).collections;
    const { Insert, Update } = collectionSchemas(described!, () => null);
    expect(Insert.properties).toEqual({
      level: { type: 'number', enum: [1, 2], description: 'One of 1, 2.' },
      price: { type: 'integer', minimum: 0, description: 'At least 0. A whole number.' },
      roles: {
        type: 'array',
        items: { type: 'string', enum: ["o'clock", 'editor'] },
        maxItems: 3,
        description: 'At most 3 items.',
      },
    });
    expect((Update.properties as Record<string, unknown>).level).toEqual({
      anyOf: [{ type: 'number', enum: [1, 2], description: 'One of 1, 2.' }, { type: 'null' }],
    });
  });
});
