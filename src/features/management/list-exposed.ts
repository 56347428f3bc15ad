import type { App } from '../../app.js';
import { oneOf, object, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import { listCollections } from '../collections/collection-store.js';
import { USERS } from '../collections/users-collection.js';
import type { Project } from '../projects/project.js';
import { signInOf } from '../projects/sign-in-settings.js';
import { listSocialProviders } from '../users/social/social-provider.js';
import type { Collection } from '../collections/collection.js';
import { rulesOf, type RuleName } from '../collections/rules/collection-rules.js';
import type { Rule, RuleCondition } from '../collections/rules/rule.js';

/** Something that callers with a publishable key can do in a project. */
export const EXPOSED = object(
  {
    kind: oneOf('collection', 'sign-up', 'files'),
    name: { ...TEXT, description: 'The collection, or the sign-up method.' },
    what: { ...TEXT, description: 'Who can do what.' },
    closes: { ...TEXT, description: 'The command that removes the access.' },
  },
  'ExposedPart',
);
export type Exposed = TypeOf<typeof EXPOSED>;

/** What anyone with the publishable key of a project can read, write and sign up for. */
export async function listExposed(app: App, project: Project): Promise<Exposed[]> {
  const named = quoted(project.name);
  const of = `--project ${named}`;
  const collections = (await listCollections(app, project._id)).filter(({ name }) => name !== USERS);
  const open = collections.flatMap((collection): Exposed[] => {
    const what = presentExposures(listExposures(collection));
    const closes = `bsvc collection rls ${collection.name} ${of} --server-only`;
    return what === '' ? [] : [{ kind: 'collection', name: collection.name, what, closes }];
  });
  const { codeLogin, anonymous } = signInOf(project);
  const providers = await listSocialProviders(app, project);
  const signUp = (name: string, how: string, closes: string): Exposed => ({
    kind: 'sign-up',
    name,
    what: `everyone can sign up ${how}`,
    closes,
  });
  return [
    ...open,
    signUp('password', 'with email and password', `bsvc key revoke <publishable key> ${of}`),
    ...(codeLogin === 'signup'
      ? [signUp('code', 'with an email code', `bsvc project update ${named} --code-login existing`)]
      : []),
    ...(anonymous ? [signUp('anonymous', 'without an address', `bsvc project update ${named} --anonymous off`)] : []),
    ...providers.map(({ name }) => signUp(name, `with ${name}`, `bsvc user social remove ${name} ${of}`)),
    ...(project.storage?.publishableUploads
      ? [
          {
            kind: 'files' as const,
            name: 'uploads',
            what: 'everyone can upload files',
            closes: `bsvc project update ${named} --publishable-uploads off`,
          },
        ]
      : []),
  ];
}

/** A name as a word of a shell. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}

/** Who may do something with the publishable key. Everyone can sign up, so signed-in users may be anyone. */
const AUDIENCES = ['everyone', 'signed-in users'] as const;

interface Exposure {
  action: Exclude<RuleName, 'updateTo'>;
  who: (typeof AUDIENCES)[number];
  /** Only with documents for which the rule holds, such as their own. */
  some: boolean;
}

const ACTIONS = ['read', 'create', 'update', 'delete'] as const;

/** What callers with the publishable key may do in a collection; empty for the secret key only. */
function listExposures(collection: Pick<Collection, 'rls' | 'rules' | 'isPublic'>): Exposure[] {
  const rules = rulesOf(collection);
  return ACTIONS.flatMap((action) => {
    const widest = widestOf(rules[action]);
    return widest ? [{ action, ...widest }] : [];
  });
}

function widestOf({ alternatives }: Rule): Omit<Exposure, 'action'> | null {
  const found = alternatives.map((conditions) => ({
    who: conditions.some(asksCaller) ? AUDIENCES[1] : AUDIENCES[0],
    some: conditions.some(({ kind }) => kind !== 'signedIn'),
  }));
  const rank = ({ who, some }: Omit<Exposure, 'action'>): number => AUDIENCES.indexOf(who) * 2 + Number(some);
  return found.sort((a, b) => rank(a) - rank(b))[0] ?? null;
}

function asksCaller(condition: RuleCondition): boolean {
  if (condition.kind !== 'document') return true;
  return condition.value.kind === 'attribute' || condition.value.kind === 'set';
}

const VERBS: Readonly<Record<Exposure['action'], string>> = {
  read: 'read',
  create: 'create',
  update: 'change',
  delete: 'delete',
};

/** The exposures in words, such as "everyone can read; signed-in users can create, change, delete some documents". */
function presentExposures(exposures: readonly Exposure[]): string {
  const groups = new Map<string, string[]>();
  for (const { action, who, some } of exposures) {
    const group = `${who} can {} ${some ? 'some documents' : 'all documents'}`;
    groups.set(group, [...(groups.get(group) ?? []), VERBS[action]]);
  }
  return [...groups].map(([group, verbs]) => group.replace('{}', verbs.join(', '))).join('; ');
}
