import fc from 'fast-check';
import { parse, stringify } from 'yaml';
import { describe, expect, it } from 'vitest';
import { presentFieldSpec } from '../../../cli/ask/field-spec.js';
import { withParsedCollections } from '../../../cli/formats/read-declaration-file.js';
import type { CollectionDeclaration } from '../../../src/features/collections/schema/collection-declaration.js';
import { listLoosenedBy, planSchema } from '../../../src/features/collections/schema/plan-schema.js';
import { listCollections } from '../../../src/features/collections/collection-store.js';
import { setRls } from '../../../src/features/collections/change-collection.js';
import { RULE_NAMES, rulesOf } from '../../../src/features/collections/rules/collection-rules.js';
import { admitsAnyone, admitsNobody, withoutPlaces, type Rule } from '../../../src/features/collections/rules/rule.js';
import { applySchema } from '../../../src/features/collections/schema/apply-schema.js';
import type { Field, FieldShape } from '../../../src/features/collections/fields/field.js';
import { applyProjects } from '../../../src/features/declaration/apply-projects.js';
import { declareProject } from '../../../src/features/declaration/declare-project.js';
import { planProjects, NO_SECRETS } from '../../../src/features/declaration/plan-projects.js';
import { readProjectsFile, type ProjectDeclaration } from '../../../src/features/declaration/project-declaration.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { buildProject } from '../../helpers/build-project.js';
import { useTestApp } from '../../helpers/use.js';
import { openSeed } from '../../helpers/seed.js';

const test = await useTestApp({ settings: { BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });

const NO_PRUNE = { prune: false };
const CLAIMED = /^(email|password|emailverified)$/i;

const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/).filter((word) => !['userid', 'constructor'].includes(word));
const text = fc.string({ unit: 'grapheme', maxLength: 12 });

function shapes(level: number): fc.Arbitrary<FieldShape> {
  const plain = fc.constantFrom<FieldShape>(
    { type: 'String' },
    { type: 'Number' },
    { type: 'Boolean' },
    { type: 'Date' },
    { type: 'Ref' },
    { type: 'Ref', ref: 'users' },
    { type: 'Object' },
    { type: 'Array' },
    { type: 'Date', min: '2000-01-01T00:00:00Z', max: 'now' },
    { type: 'Array', items: { type: 'String', enum: ['a|b', ' ', '"', 'owner'] }, maxItems: 3, uniqueItems: true },
    { type: 'Array', items: { type: 'Number', min: -1.5, integer: true }, minItems: 1 },
    { type: 'Array', items: { type: 'String', pattern: '^a{1,3}\\."|b$', format: 'url', trim: true, maxLength: 9 } },
  );
  if (level === 0) return plain;
  return fc.oneof(
    { weight: 3, arbitrary: plain },
    shapes(level - 1).map((items) => ({ type: 'Array' as const, items })),
    fieldLists(level - 1, false).map((fields) => ({ type: 'Object' as const, fields })),
  );
}

function fieldLists(level: number, users: boolean): fc.Arbitrary<Field[]> {
  const field = fc
    .record({ name, shape: shapes(level), mark: fc.nat(9), word: text, number: fc.double({ noNaN: true, max: 1e9 }) })
    .map(({ name, shape, mark, word, number }): Field => {
      const single = ['String', 'Number', 'Boolean', 'Date', 'Ref'].includes(shape.type);
      const defaults = { String: word, Number: Number.isFinite(number) ? number : 0, Boolean: mark % 2 === 0 };
      const value = defaults[shape.type as keyof typeof defaults] as Field['default'] | undefined;
      if (mark === 0) return { name, ...shape, required: true };
      if (mark === 1 && single && level === 2) return { name, ...shape, unique: true };
      if (mark < 5 && value !== undefined) return { name, ...shape, default: value };
      if (mark === 5 && users) return { name, ...shape, protected: true };
      if (mark === 6 && users) return { name, ...shape, public: true };
      return { name, ...shape };
    });
  return fc.uniqueArray(field, { selector: ({ name }) => name, minLength: 1, maxLength: 5 });
}

const access: fc.Arbitrary<Partial<CollectionDeclaration>> = fc.oneof(
  fc.record({ access: fc.constantFrom('public' as const, 'server-only' as const) }),
  fc.record({
    access: fc.constantFrom('public-read' as const, 'private' as const),
    ownerField: fc.constant('ownerId'),
  }),
  fc.record({
    rls: fc.record({
      mode: fc.constantFrom('public-read' as const, 'private' as const),
      ownerField: fc.constant('userId'),
    }),
  }),
  fc.record({ rules: fc.record({ read: fc.constantFrom('anyone', 'user', 'doc.id = user.id') }) }),
  fc.constant({}),
);

const collection = fc
  .record({
    name,
    mode: fc.constantFrom('enforced' as const, 'flexible' as const),
    fields: fieldLists(2, false),
    access,
  })
  .map(({ access: given, ...made }) => ({ ...made, ...given }))
  .chain((made) =>
    fc.subarray(made.fields.filter(({ type }) => type === 'Number' || type === 'Date').map(({ name }) => name)).map(
      // What the users of a project are called cannot be the name of a collection.
      (indexes) => ({
        ...made,
        name: `c${made.name}`,
        indexes,
        ...(indexes.length === 2 && { uniques: [indexes] }),
        ...(indexes.length === 1 && { expire: { field: 'updatedAt', after: '7d', permanent: true } }),
      }),
    ),
  );
const collections = fc.uniqueArray(collection, { selector: ({ name }) => name, maxLength: 3 });

const projects = fc.record({
  plan: fc.constantFrom('free' as const, 'pro' as const),
  allowedDomains: fc.constantFrom<string[]>(['*'], ['https://a.example'], ['*.b.example', 'http://localhost:5173']),
  limits: fc.dictionary(fc.constantFrom('mail', 'storage', 'database', 'requests', 'authRequests'), fc.nat()),
  storage: fc.record({ publishableUploads: fc.boolean() }),
  users: fc.record({ fields: fieldLists(2, true).map((fields) => fields.filter((field) => !field.required)) }),
  collections,
  mail: fc.record({
    from: fc.constantFrom(null, 'a@b.example', 'Shop <shop@b.example>'),
    templates: fc.uniqueArray(
      fc.record({ name: fc.constantFrom('welcome', 'bill'), subject: fc.constant('Hello {{name}}'), text: text }),
      { selector: ({ name }) => name },
    ),
  }),
  webhooks: fc.uniqueArray(
    fc.record({
      url: fc.constantFrom('http://127.0.0.1:9/a', 'http://127.0.0.1:9/b?x=1'),
      events: fc.constantFrom<string[]>(['*'], ['*.insert', '*.delete']),
      description: fc.constantFrom('to: the "warehouse"', 'off'),
      enabled: fc.boolean(),
    }),
    { selector: ({ url }) => url },
  ),
});

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Partial<Pick<T, K>> {
  return Object.fromEntries(keys.flatMap((key) => (key in from ? [[key, from[key]]] : []))) as Partial<Pick<T, K>>;
}

/** True when a rule admits what the one before does not; of the rules of this file only equal texts are equal. */
function opens(from: Rule, to: Rule): boolean {
  return !admitsNobody(to) && !admitsAnyone(from) && textOf(from) !== textOf(to);
}

const textOf = (rule: Rule): string => JSON.stringify(rule.alternatives, withoutPlaces);

async function apply(declared: ProjectDeclaration[]): Promise<void> {
  const plans = await planProjects(test.app, declared, NO_SECRETS);
  await applyProjects(test.app, plans, { stop: new AbortController().signal, onCreated: () => undefined });
}

/** As `bsvc project export` writes it and `bsvc apply` reads it. */
async function exported(projectName: string): Promise<ProjectDeclaration> {
  const declared = await declareProject(test.app, await requireProject(test.app, projectName));
  const specs = (fields: readonly Field[] = []): unknown[] => fields.map((field) => presentFieldSpec(field) ?? field);
  const written = {
    ...declared,
    users: { fields: specs(declared.users?.fields) },
    collections: declared.collections?.map((each) => ({ ...each, fields: specs(each.fields) })),
  };
  const file: unknown = parse(stringify({ format: 'bsvc/1', projects: [written] }));
  return readProjectsFile(withParsedCollections(file)).projects[0]!;
}

describe('the exported declaration of any project', () => {
  it('changes nothing when it is applied, and makes the same project under another name', async () => {
    let made = 0;
    await fc.assert(
      fc.asyncProperty(projects, async (drawn) => {
        const own = `export ${++made}`;
        const valid = { ...drawn, users: { fields: drawn.users.fields.filter(({ name }) => !CLAIMED.test(name)) } };
        valid.mail.templates = valid.mail.templates.filter((template) => template.text.trim() !== '');
        await apply([{ name: own, ...valid }]);
        const file = await exported(own);
        for (const prune of [false, true]) {
          const [plan] = await planProjects(test.app, [file], { ...NO_SECRETS, prune });
          expect({ ...plan, project: null }).toMatchObject({ what: [], collections: [], items: [] });
        }
        await apply([{ ...file, name: `${own} copy` }]);
        expect({ ...(await exported(`${own} copy`)), name: own }).toEqual(file);
      }),
      { numRuns: 40, seed: openSeed('exported declarations') },
    );
  });
});

describe('a declaration for a collection that is there', () => {
  it('changes nothing that it leaves out, and never loosens without saying so', async () => {
    await fc.assert(
      fc.asyncProperty(
        collection,
        collection,
        fc.subarray(['mode', 'fields', 'access', 'indexes']),
        async (...drawn) => {
          const [before, after, said] = drawn;
          const { project } = await buildProject(test.app);
          await applySchema(test.app, project, planSchema([], [{ ...before, name: 'things' }], { prune: false }));
          const [stored] = await listCollections(test.app, project._id);
          const declared: CollectionDeclaration = { name: 'things' };
          // An index may name a field that only the other side declares.
          if (said.includes('mode')) declared.mode = after.mode;
          if (said.includes('fields')) declared.fields = after.fields;
          if (said.includes('access')) Object.assign(declared, pick(after, ['access', 'ownerField', 'rls', 'rules']));
          if (said.includes('indexes')) declared.indexes = before.indexes.slice(1);
          const changes = planSchema([stored!], [declared], { prune: false });
          await applySchema(test.app, project, changes);
          const [now] = await listCollections(test.app, project._id);
          for (const key of ['mode', 'fields'] as const) {
            if (!said.includes(key)) expect(now![key]).toEqual(stored![key]);
          }
          const [was, is] = [stored!, now!].map((each) => pick(each, ['rls', 'rules', 'isPublic']));
          if (!said.includes('access')) expect(is).toMatchObject(was!);
          expect(now!.indexes).toEqual(stored!.indexes);
          expect(now!.fields.map((field) => field.name)).toEqual(
            expect.arrayContaining(stored!.fields.map((field) => field.name)),
          );
          const opened = RULE_NAMES.some((rule) => opens(rulesOf(stored!)[rule], rulesOf(now!)[rule]));
          if (opened && !stored!.isPublic) expect(listLoosenedBy(changes).join()).toMatch(/: (access|rule)/);
          if (!said.includes('fields') && !opened && now!.mode === stored!.mode)
            expect(listLoosenedBy(changes)).toEqual([]);
        },
      ),
      { numRuns: 60, seed: openSeed('declared collections') },
    );
  });

  it('drops fields and indexes that its lists do not name with prune, and only then', async () => {
    const { project } = await buildProject(test.app);
    const fields: Field[] = ['a', 'b'].map((name) => ({ name, type: 'Number' }));
    await applySchema(test.app, project, planSchema([], [{ name: 'things', fields, indexes: ['a', 'b'] }], NO_PRUNE));
    const declared = { name: 'things', fields: [fields[0]!], indexes: ['a'] };
    const existing = await listCollections(test.app, project._id);
    expect(planSchema(existing, [declared], NO_PRUNE)).toEqual([]);
    expect(planSchema(existing, [declared], { prune: true })).toMatchObject([
      { what: ['- b', 'indexes: a · b -> a'], loosens: [] },
    ]);
  });

  it('is refused when the collection was closed between plan and change, and leaves it closed', async () => {
    const { project } = await buildProject(test.app);
    const rls = { mode: 'public-read' as const, ownerField: 'userId' };
    await applySchema(test.app, project, planSchema([], [{ name: 'things', mode: 'flexible', rls }], NO_PRUNE));
    const changes = planSchema(
      await listCollections(test.app, project._id),
      [{ name: 'things', rls, indexes: ['a'] }],
      NO_PRUNE,
    );
    expect(listLoosenedBy(changes)).toEqual([]);
    await setRls(test.app, project._id, 'things', { ...rls, mode: 'private' });
    await expect(applySchema(test.app, project, changes)).rejects.toMatchObject({ code: 'CHANGED_MEANWHILE' });
    expect((await listCollections(test.app, project._id))[0]).toMatchObject({ rls: { mode: 'private' }, indexes: [] });
  });

  it.each([
    [{ protected: true }, {}, 'role: no longer protected'],
    [{}, { public: true }, 'role: now public'],
    [{ unique: true }, {}, 'role: no longer unique'],
    [{ type: 'Object', fields: [{ name: 'a', type: 'String' }] }, { type: 'Object' }, 'role.a: no longer declared'],
  ] as const)('tells that a field %j as %j loosens', async (before, after, line) => {
    const { project } = await buildProject(test.app);
    const declare = async (field: object): Promise<string[]> => {
      const existing = await listCollections(test.app, project._id);
      const role = { name: 'role', type: 'String' as const, ...field };
      const changes = planSchema(existing, [{ name: 'users', fields: [role] }], NO_PRUNE);
      await applySchema(test.app, project, changes);
      return listLoosenedBy(changes);
    };
    expect(await declare(before)).toEqual([]);
    expect(await declare(after)).toEqual([`users: ${line}`]);
  });
});
