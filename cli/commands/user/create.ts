import type { App } from '../../../src/app.js';
import { AppError, invalid } from '../../../src/errors.js';
import { requireCollection } from '../../../src/features/collections/collection-store.js';
import { USERS } from '../../../src/features/collections/users-collection.js';
import type { Project } from '../../../src/features/projects/project.js';
import { presentInvite } from '../../../src/features/users/invites/invite.js';
import { sendInvite } from '../../../src/features/users/invites/send-invite.js';
import { findUserByEmail } from '../../../src/features/users/user-store.js';
import { isEmail, normaliseEmail } from '../../../src/features/users/credentials.js';
import { presentAccount } from '../../../src/features/users/accounts/list-users.js';
import { emailTaken } from '../../../src/features/users/accounts/insert-user.js';
import { signUp } from '../../../src/features/users/sign-up.js';
import type { User } from '../../../src/features/users/user.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, list, secret, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import type { Result } from '../../view/output.js';
import { presentFound } from '../../view/present-found.js';
import { readNewPassword } from '../../shell/read-secret.js';
import { readFields } from './read-fields.js';

export default defineCommand({
  details: [
    'Protected fields can be set here. Without --verified, a code to verify the address is emailed to the user.',
    '--invite sends an email invitation instead of creating an account. It works once, within seven days, for a user with that verified address. Without --redirect it links to the first address of the project (project update --redirect). To add a membership document with the invitation, use POST /api/userAuth/invites.',
  ].join('\n'),
  examples: [
    'bsvc user create --project shop --email ann@example.com',
    'bsvc user create --project shop --email ann@example.com --password-env ANN_PASSWORD --field role=admin --verified',
    'bsvc user create --project shop --email ann@example.com --password-stdin --if-not-exists < password.txt',
    'bsvc user create --project shop --email grace@example.com --invite --role editor',
  ],
  audited: true,
  parameters: {
    project: projectOption,
    email: option('--email <address>', 'e-mail address to sign in with'),
    password: secret('password', 'the password, 6 to 72 bytes'),
    fields: list('--field <name=value>', 'a further field of the users collection (repeatable)'),
    verified: flag('--verified', 'mark the address as verified: no email'),
    ifNotExists: flag('--if-not-exists', 'exit 0 if the user exists'),
    invite: flag('--invite', 'send an invitation instead'),
    roles: list('--role <role>', 'with --invite: a role that the user gets (repeatable)'),
    redirect: option('--redirect <url>', 'with --invite: page that the email links to'),
  },
  async run(context, input) {
    const { stdin, env } = input.password;
    const isAccount = input.fields.length > 0 || input.verified || input.ifNotExists || stdin || env !== undefined;
    if (input.invite && isAccount) throw new UsageError('--invite takes --email, --role and --redirect alone.');
    if (!input.invite && (input.roles.length > 0 || input.redirect !== undefined)) {
      throw new UsageError('--role and --redirect go with --invite.');
    }
    const email = input.email ?? (await context.ask.text('E-mail address:', 'No address: add --email <address>'));
    if (!isEmail(normaliseEmail(email))) {
      throw invalid('INVALID_EMAIL', `"${email.slice(0, 100)}" is not an e-mail address`);
    }
    const { app, project } = await chooseProject(context, input.project);
    if (input.invite) return invite(app, project, { ...input, email });
    // Before the password is asked for, so that nobody types one in vain.
    const findExisting = () => findUserByEmail(app, project._id, normaliseEmail(email));
    const existing = await findExisting();
    if (existing && !input.ifNotExists) throw emailTaken();
    if (existing) return presentExisting(existing);
    const fields = readFields(input.fields, await requireCollection(app, project._id, USERS));
    const password = await readNewPassword(context, input.password, 'Password');
    const body = { ...fields, email, password, ...(input.verified && { emailVerified: true }) };
    let user: User;
    try {
      user = await signUp(app, project, body, 'project');
    } catch (error) {
      // Somebody else may have created it since.
      const taken = error instanceof AppError && error.code === 'EMAIL_TAKEN';
      const winner = input.ifNotExists && taken ? await findExisting() : null;
      if (winner) return presentExisting(winner);
      throw error;
    }
    const account = presentAccount(user);
    return {
      json: { user: account, created: true },
      quiet: account._id,
      text: () => `Created user ${user.email} (${account._id}).`,
    };
  },
});

async function invite(
  app: App,
  project: Project,
  {
    email,
    roles,
    redirect = project.signIn?.redirects?.[0],
  }: { email: string; roles: string[]; redirect?: string | undefined },
): Promise<Result> {
  if (redirect === undefined) {
    throw new UsageError(`No page to link to: bsvc project update ${project.name} --redirect <url>.`);
  }
  const json = presentInvite(await sendInvite(app, project, { email, redirect, roles }));
  return { json, quiet: json.id, text: () => `Invited ${json.email} until ${json.expiresAt}.` };
}

function presentExisting(user: User): Result {
  const account = presentAccount(user);
  return {
    json: { user: account, created: false },
    quiet: account._id,
    text: () => presentFound(`User ${user.email} (${account._id})`),
  };
}
