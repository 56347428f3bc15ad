import { useLayoutEffect, useState } from 'preact/hooks';
import { prepare, send, type Prepared } from '../api.js';
import { below, type Address } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { cell, moment } from '../format.js';
import { differences, readJsonObject } from '../json.js';
import { invalidate, useLoad } from '../load.js';
import { act, Copy, Dialog, say, ErrorNote, useAction } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { Drawer } from '../parts/drawer.js';
import { Field, Form, listIn, PasswordField, TextArea, Tick, useForm } from '../parts/form.js';
import { Pairs } from '../parts/page-head.js';
import { List } from '../parts/table.js';
import { mayChange } from '../session.js';

/** An end user as operators see it; further fields are those of the project's collection `users`. */
type User = ApiSchemas['Account'];
type UserPath = Address<'/api/projects/{projectId}/users/{user}'>;

/** One user: what is kept of them, and all that an operator does with an account. */
export function UserDrawer({
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
export const readFields = (json: string) =>
  readJsonObject(json.trim() || '{}', 'Further fields are a JSON object, such as {"name": "Ada"}');
