import { prepare, send, type Prepared } from '../api.js';
import { below, withQuery, type Address } from '../api-paths.js';
import { moment, cell } from '../format.js';
import { useLoad, invalidate } from '../load.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { DrawerForm, Drawer } from '../parts/drawer.js';
import { Choice, Field, listIn, PasswordField, TextArea, Tick, useForm, Form } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty, Pairs } from '../parts/page-head.js';
import { List } from '../parts/table.js';
import { act, Copy, Dialog, say, ErrorNote, useAction } from '../parts/basics.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { useLayoutEffect, useState } from 'preact/hooks';
import type { ApiSchemas } from '../api-routes.js';
import { differences, readJsonObject } from '../json.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';

export function Users() {
  const { query } = place.value;
  const project = projectPath();
  const base = below(project, '/users');
  const page = Number(query.get('page') ?? 1) || 1;
  const [email, q] = [query.get('email') ?? '', query.get('q') ?? ''];
  const list = useLoad(withQuery(base, { email, q, page: page > 1 ? page : null }));
  const open = query.get('open');
  const close = (): void => goTo(linkHere({ open: null, new: null, invite: null }));
  return (
    <>
      <CrudScreen
        title="Users"
        count={list.data?.total}
        actions={
          <>
            <a class="button" href={linkHere({ invite: '1' })}>
              Invite…
            </a>
            <a class="button primary" href={linkHere({ new: '1' })}>
              <Icon name="plus" />
              New user
            </a>
          </>
        }
        filters={[
          { name: 'email', label: 'Email starts with' },
          { name: 'q', label: 'ID or any text contains' },
        ]}
        list={list}
        names={['user', 'users']}
        keyOf={({ _id }) => _id}
        empty={email || q ? 'No users match your search.' : <NoUsers />}
        columns={[
          { name: 'Email', show: (user) => opens(user._id, user.email ?? user._id) },
          { name: 'Verified', show: (user) => (user.emailVerified ? 'yes' : <span class="muted">no</span>) },
          {
            name: 'State',
            show: (user) =>
              user.disabled ? <span class="tag bad">disabled</span> : <span class="tag good">active</span>,
          },
          { name: 'Roles', show: ({ roles }) => roles?.join(', ') ?? '' },
          { name: 'Created', show: (user) => moment(user.createdAt) },
        ]}
      />
      {open && <UserDrawer key={open} base={base} id={open} onClose={close} />}
      {query.get('new') && mayChange.value && <NewUser base={base} onClose={close} />}
      {query.get('invite') && mayChange.value && <InviteUser project={project} onClose={close} />}
    </>
  );
}

const NoUsers = () => (
  <Empty title="No users yet">
    <p>Apps sign users up with POST /api/userAuth/signup. You can also create and invite users here.</p>
  </Empty>
);

/** A user that the project makes: the address is known to be theirs, or they are mailed a code. */
function NewUser({ base, onClose }: { base: Address<'/api/projects/{projectId}/users'>; onClose: () => void }) {
  const form = useForm({ email: '', password: '', emailVerified: false, json: '' });
  const { json, emailVerified, ...account } = form.values;
  const read = readFields(json);
  const body = { ...read.fields, ...account, ...(emailVerified && { emailVerified }) };
  return (
    <DrawerForm
      title="New user"
      action="Create the user"
      requests={[prepare('POST', base, { body })]}
      done={`${account.email} can sign in now`}
      isDirty={form.isDirty}
      mayGo={account.email !== '' && account.password !== '' && read.fields !== null}
      onClose={onClose}
    >
      <Field label="Email" type="email" required {...form.at('email')} />
      <PasswordField label="Password" isNew {...form.at('password')} />
      <Tick label="Mark the email as verified, without sending one" {...form.at('emailVerified')} />
      <TextArea
        label="Further fields"
        rows={4}
        hint="A JSON object with fields of the collection users, protected ones too."
        {...form.at('json')}
      />
      {read.problem !== null && <p class="bad">{read.problem}</p>}
    </DrawerForm>
  );
}

/** Invites by mail, and shows which invitations are open. */
function InviteUser({ project, onClose }: { project: Address<'/api/projects/{projectId}'>; onClose: () => void }) {
  const path = below(project, '/invites');
  const { data } = useLoad(project);
  const redirects = data?.signIn.redirects ?? [];
  const form = useForm({ email: '', roles: '', chosen: '' });
  const { email, chosen } = form.values;
  const redirect = chosen || (redirects[0] ?? '');
  const roles = listIn(form.values.roles);
  const body = { email, redirect, ...(roles.length > 0 && { roles }) };
  return (
    <DrawerForm
      title="Invite"
      action="Send the invitation"
      requests={[prepare('POST', path, { body })]}
      done={`An invitation to ${email} is on its way`}
      isDirty={email !== ''}
      mayGo={email !== '' && redirect !== ''}
      onDone={form.reset}
      onClose={onClose}
    >
      {data && redirects.length === 0 && (
        <p class="trouble">
          No redirect pages are allowed yet.{' '}
          <a href={linkTo(['p', place.value.parts[1] ?? '', 'sign-in'])}>Add one under “Sign-in”</a>
        </p>
      )}
      <Field label="Email" type="email" required {...form.at('email')} />
      <Field label="Roles" hint="Comma-separated. The user gets them when accepting." {...form.at('roles')} />
      <Choice
        label="Page that the email links to"
        choices={redirects.map((each) => [each, each] as const)}
        {...form.at('chosen')}
        value={redirect}
      />
      <OpenInvites path={path} />
    </DrawerForm>
  );
}

function OpenInvites({ path }: { path: Address<'/api/projects/{projectId}/invites'> }) {
  return (
    <>
      <h3>Open invitations</h3>
      <List
        label="Open invitations"
        of={useLoad(path)}
        keyOf={({ id }) => id}
        empty="None."
        columns={[
          { name: 'Email', show: (invite) => invite.email },
          { name: 'Roles', show: (invite) => invite.roles.join(', ') },
          { name: 'Until', show: ({ expiresAt }) => moment(expiresAt) },
          {
            name: 'Withdraw',
            show: ({ id, email }) => (
              <button
                type="button"
                class="small"
                aria-label={`Withdraw the invitation of ${email}`}
                onClick={() =>
                  void act(prepare('DELETE', below(path, '/{invite}', { invite: id })), 'The invitation is withdrawn')
                }
              >
                Withdraw
              </button>
            ),
          },
        ]}
      />
    </>
  );
}

/** An end user as operators see it; further fields are those of the project's collection `users`. */
type User = ApiSchemas['Account'];
type UserPath = Address<'/api/projects/{projectId}/users/{user}'>;

/** One user: what is kept of them, and all that an operator does with an account. */
function UserDrawer({
  base,
  id,
  onClose,
}: {
  base: Address<'/api/projects/{projectId}/users'>;
  id: string;
  onClose: () => void;
}) {
  const path = below(base, '/{user}', { user: id });
  const { data, error, reload } = useLoad(path);
  const [isDirty, setDirty] = useState(false);
  return (
    <Drawer title={data?.email ?? 'User'} isDirty={isDirty} onClose={onClose}>
      <ErrorNote error={error} onRetry={reload} />
      {data && (
        <>
          <Facts user={data} />
          {mayChange.value && <EditUser key={data.updatedAt} path={path} stored={data} onDirty={setDirty} />}
          {mayChange.value && <Acts path={path} user={data} onClose={onClose} />}
          <UserSessions path={path} />
          <UserIdentities path={path} />
          <Commands of={() => requestsOf(path, data)} />
        </>
      )}
    </Drawer>
  );
}

function Facts({ user }: { user: User }) {
  return (
    <Pairs
      of={{
        Id: (
          <>
            <code>{user._id}</code> <Copy text={user._id} what="Id" />
          </>
        ),
        State: user.disabled ? <span class="tag bad">disabled</span> : <span class="tag good">active</span>,
        'Signs in with': [
          user.hasPassword ? 'a password' : 'no password',
          user.mfa?.since && `, and a second factor since ${moment(user.mfa.since)}`,
          user.mfa?.resetAt && `; second factors and passkeys end ${moment(user.mfa.resetAt)}`,
        ],
        Created: moment(user.createdAt),
        Changed: moment(user.updatedAt),
        // Who may change them sees them in the form.
        ...(!mayChange.value && {
          Email: user.emailVerified ? 'verified' : 'not verified',
          Roles: user.roles?.join(', ') || 'none',
          ...Object.fromEntries(
            Object.entries(ownFields(user)).map(([name, value]) => [
              name,
              typeof value === 'string' ? value : JSON.stringify(value),
            ]),
          ),
        }),
      }}
    />
  );
}

function EditUser({ path, stored, onDirty }: { path: UserPath; stored: User; onDirty: (isDirty: boolean) => void }) {
  const own = ownFields(stored);
  const form = useForm({
    email: stored.email ?? '',
    emailVerified: stored.emailVerified,
    roles: (stored.roles ?? []).join(', '),
    json: Object.keys(own).length === 0 ? '' : JSON.stringify(own, null, 2),
  });
  const { email, emailVerified } = form.values;
  const read = readFields(form.values.json);
  const body = {
    ...(read.fields && differences(own, read.fields)),
    ...(email.trim() !== (stored.email ?? '') && { email: email.trim() }),
    ...(emailVerified !== stored.emailVerified && { emailVerified }),
  };
  const roles = listIn(form.values.roles);
  const hasNewRoles = roles.join('\n') !== (stored.roles ?? []).join('\n');
  const mayGo = read.fields !== null && (Object.keys(body).length > 0 || hasNewRoles);
  useLayoutEffect(() => onDirty(form.isDirty), [form.isDirty]);
  const [busy, save, error] = useAction(async () => {
    if (Object.keys(body).length > 0) await send(prepare('PATCH', path, { body }));
    if (hasNewRoles) await send(prepare('PUT', below(path, '/roles'), { body: { roles } }));
    say('The user is changed');
    onDirty(false);
    invalidate(path);
  });
  return (
    <Form onSubmit={() => void (mayGo && save())}>
      <Field label="Email" type="email" required {...form.at('email')} />
      <Tick label="Email address verified" {...form.at('emailVerified')} />
      <Field label="Roles" hint="Comma-separated. Access rules read them as user.roles." {...form.at('roles')} />
      <TextArea label="Further fields" rows={5} {...form.at('json')} />
      {read.problem !== null && <p class="bad">{read.problem}</p>}
      <ErrorNote error={error} />
      <p class="row">
        <button class="primary" disabled={busy || !mayGo}>
          Save
        </button>
      </p>
    </Form>
  );
}

/** What is done with an account at once, or after a question. */
function Acts({ path, user, onClose }: { path: UserPath; user: User; onClose: () => void }) {
  const [asked, ask] = useState<'password' | 'delete' | 'factors' | null>(null);
  const close = (): void => ask(null);
  return (
    <p class="row">
      <button
        onClick={() =>
          void (user.disabled
            ? act(prepare('POST', below(path, '/enable')), 'The account works again')
            : act(prepare('POST', below(path, '/disable')), 'The account is disabled'))
        }
      >
        {user.disabled ? 'Enable' : 'Disable'}
      </button>
      <button onClick={() => ask('password')}>Set the password…</button>
      {!user.mfa?.resetAt && <button onClick={() => ask('factors')}>Reset MFA…</button>}
      <button class="danger" onClick={() => ask('delete')}>
        Delete…
      </button>
      {asked === 'password' && <SetPassword path={path} onClose={close} />}
      {asked === 'factors' && (
        <Confirm
          title="Reset MFA"
          text="MFA is removed after the project’s delay, and all sessions end. The user is notified by email and can cancel it by signing in with a code."
          request={prepare('DELETE', below(path, '/mfa'))}
          done="MFA reset scheduled. The user is notified by email"
          onClose={close}
        />
      )}
      {asked === 'delete' && (
        <Confirm
          title="Delete the account"
          text="This permanently deletes the account. The user’s documents stay, unless a field has onDelete."
          name={user.email ?? user._id}
          request={prepare('DELETE', path)}
          done="The account is deleted"
          onClose={close}
          onDone={onClose}
        />
      )}
    </p>
  );
}

function SetPassword({ path, onClose }: { path: UserPath; onClose: () => void }) {
  const [password, setPassword] = useState('');
  const [busy, save, error] = useAction(async () => {
    await send(prepare('POST', below(path, '/set-password'), { body: { password } }));
    say('The password is set; every session has ended');
    onClose();
    invalidate(path);
  });
  return (
    <Dialog title="Set the password" onClose={onClose}>
      <Form onSubmit={() => void save()}>
        <p>This ends all sessions of the user. No email is sent.</p>
        <PasswordField label="New password" isNew value={password} onChange={setPassword} />
        <ErrorNote error={error} />
        <button class="primary" disabled={busy}>
          Set the password
        </button>
      </Form>
    </Dialog>
  );
}

/** Where a user is signed in. */
function UserSessions({ path }: { path: UserPath }) {
  const all = below(path, '/sessions');
  const sessions = useLoad(all);
  return (
    <>
      <h3>Sessions</h3>
      <List
        label="Sessions"
        of={sessions}
        keyOf={({ id }) => id}
        empty="No active sessions."
        columns={[
          { name: 'Last used', show: ({ usedAt }) => moment(usedAt) },
          { name: 'Signed in', show: ({ createdAt }) => moment(createdAt) },
          { name: 'From', show: ({ ip }) => ip ?? '' },
          { name: 'With', show: ({ userAgent }) => cell(userAgent ?? '', 40) },
          {
            name: 'End',
            show: ({ id, createdAt }) =>
              mayChange.value ? (
                <button
                  class="small"
                  aria-label={`End the session of ${moment(createdAt)}`}
                  onClick={() =>
                    void act(prepare('DELETE', below(all, '/{session}', { session: id })), 'The session has ended')
                  }
                >
                  End
                </button>
              ) : null,
          },
        ]}
      />
      {mayChange.value && (sessions.data?.items.length ?? 0) > 0 && (
        <p class="row">
          <button onClick={() => void act(prepare('DELETE', all), 'All sessions have ended')}>End all sessions</button>
        </p>
      )}
    </>
  );
}

/** Accounts of other services that open this one; nothing where there are none. */
function UserIdentities({ path }: { path: UserPath }) {
  const { data } = useLoad(below(path, '/identities'));
  if (!data || data.items.length === 0) return null;
  return (
    <>
      <h3>Linked sign-ins</h3>
      <ul>
        {data.items.map(({ provider, linkedAt }) => (
          <li key={provider}>
            {provider}, since {moment(linkedAt)}
          </li>
        ))}
      </ul>
    </>
  );
}

function requestsOf(path: UserPath, { disabled }: User): Prepared[] {
  const sessions = below(path, '/sessions');
  if (!mayChange.value) return [prepare('GET', sessions)];
  return [
    disabled ? prepare('POST', below(path, '/enable')) : prepare('POST', below(path, '/disable')),
    prepare('PUT', below(path, '/roles'), { body: { roles: ['editor'] } }),
    prepare('POST', below(path, '/set-password'), { body: { password: '' } }),
    prepare('DELETE', below(path, '/mfa')),
    prepare('DELETE', sessions),
    prepare('DELETE', path),
  ];
}

const BUILT_IN = new Set([
  ...['_id', 'email', 'emailVerified', 'disabled', 'hasPassword', 'createdAt', 'updatedAt', 'roles', 'mfa'],
]);

/** What the project keeps of a user. */
const ownFields = (user: User): Record<string, unknown> =>
  Object.fromEntries(Object.entries(user).filter(([name]) => !BUILT_IN.has(name)));

/** What is typed as further fields of a user. */
const readFields = (json: string) =>
  readJsonObject(json.trim() || '{}', 'Further fields are a JSON object, such as {"name": "Ada"}');
