import type { App } from '../../app.js';
import { oneOf, object, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import { listCollections } from '../collections/list-collections.js';
import { listExposures, presentExposures } from '../collections/rules/exposure.js';
import { USERS } from '../collections/users-collection.js';
import type { Project } from '../projects/project.js';
import { signInOf } from '../projects/sign-in-settings.js';
import { listSocialProviders } from '../users/social/social-provider.js';

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
    ...providers.map(({ name }) => signUp(name, `with ${name}`, `bsvc user social ${name} --remove ${of}`)),
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
