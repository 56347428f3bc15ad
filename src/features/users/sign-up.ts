import type { App } from '../../app.js';
import { forbidden } from '../../errors.js';
import { clientNetwork } from '../../http/requests/client-address.js';
import type { WriteTurn } from '../../platform/database/database.js';
import { userCaller } from '../access/operator-access.js';
import { HIDDEN_FIELD } from '../collections/fields/field.js';
import { requireCollection } from '../collections/collection-store.js';
import { USERS } from '../collections/users-collection.js';
import type { Project } from '../projects/project.js';
import { signInOf } from '../projects/sign-in-settings.js';
import { requireSigningKey } from '../projects/token-secret.js';
import { emailTaken, insertUser } from './accounts/insert-user.js';
import { readNewUser, type FieldSetter } from './accounts/new-user.js';
import { BY_STRANGER, sendCode } from './codes/send-code.js';
import type { SignedIn } from './sign-in/complete-sign-in.js';
import { openFirstSession, type Client, type Tokens } from './sessions/open-session.js';
import { BY_PASSWORD } from './sessions/session.js';
import type { User } from './user.js';
import { askSignUp } from './user-hooks.js';
import { findUserByEmail } from './user-store.js';

interface SignUpOptions {
  gone?: AbortSignal;
  /** Of the person who signs up. */
  network?: string;
  needsPassword?: boolean;
  /** Of the request, about which own code is asked; absent for background work. */
  client?: Client;
  /** What the transaction of the user stores with it. */
  together?: (user: User) => Promise<WriteTurn>;
}

/**
 * Creates an account from a body of schema fields and sends the code that confirms its address. 400 with every problem,
 * 409 EMAIL_TAKEN or DUPLICATE_VALUE, 503 when too many passwords wait to be hashed.
 */
export async function signUp(
  app: App,
  project: Project,
  body: unknown,
  setter: FieldSetter,
  { gone, network = '', needsPassword = true, client, together }: SignUpOptions = {},
): Promise<User> {
  // Everything the reply needs is there before anything is stored: an account whose reply was an error could not be
  // made again.
  requireSigningKey(app, project);
  const collection = await requireCollection(app, project._id, USERS);
  const { user: wanted, password } = readNewUser(collection, body, { setter, needsPassword }, app.clock.now());
  // Before the slow hash; the unique index has the last word.
  if (await findUserByEmail(app, project._id, wanted.email!)) throw emailTaken();
  const user = client ? await askSignUp(app, project, collection, wanted, client) : wanted;
  if (password !== null) {
    const tenant = project._id.toHexString();
    user[HIDDEN_FIELD].passwordHash = await app.passwords.inTurn(tenant, (bcrypt) => bcrypt.hash(password), gone);
  }
  // What the new user refers to is what that user may read.
  const referrer = setter === 'user' ? { caller: userCaller(project, user._id.toHexString()) } : null;
  await insertUser(app, collection, user, referrer, together && (await together(user)));
  if (!user.emailVerified) {
    await sendCode(app, project, 'verification', user.email!, { asker: { ...BY_STRANGER, network } }).catch(
      (error: unknown) =>
        app.log.error({ err: error, userId: user._id.toHexString() }, 'verification mail could not be sent'),
    );
  }
  return user;
}

/** signUp by which the user is signed in at once: both happen or neither does. */
export async function signUpSignedIn(
  app: App,
  project: Project,
  body: unknown,
  setter: FieldSetter,
  client: Client,
): Promise<SignedIn> {
  let tokens: Tokens | undefined;
  const user = await signUp(app, project, body, setter, {
    gone: client.gone,
    network: clientNetwork(client.ip),
    client,
    async together(fresh) {
      const opened = await openFirstSession(app, project, fresh, client, BY_PASSWORD);
      tokens = opened.tokens;
      return opened.storing;
    },
  });
  return { user, tokens: tokens! };
}

/** 403 ANONYMOUS_OFF unless the project allows anonymous users. */
export function requireAnonymousOn(project: Project): void {
  if (signInOf(project).anonymous) return;
  throw forbidden(
    'ANONYMOUS_OFF',
    `Anonymous users are off in this project. Turn them on: bsvc project update ${project.name} --anonymous on`,
  );
}

/** Creates an anonymous user, whose only sign-in method is this session. 400 for fields, as signUp. */
export async function signUpAnonymous(app: App, project: Project, body: unknown, client: Client): Promise<SignedIn> {
  requireSigningKey(app, project);
  const collection = await requireCollection(app, project._id, USERS);
  const options = { setter: 'user', needsPassword: false, isAnonymous: true } as const;
  const { user: wanted } = readNewUser(collection, body, options, app.clock.now());
  const user = await askSignUp(app, project, collection, wanted, client);
  const referrer = { caller: userCaller(project, user._id.toHexString()) };
  const { tokens, storing } = await openFirstSession(app, project, user, client, { method: 'anon' });
  await insertUser(app, collection, user, referrer, storing);
  return { user, tokens };
}
