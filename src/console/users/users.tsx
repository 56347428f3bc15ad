import { prepare } from '../api.js';
import { below, withQuery, type Address } from '../api-paths.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { DrawerForm } from '../parts/drawer.js';
import { Choice, Field, listIn, PasswordField, TextArea, Tick, useForm } from '../parts/form.js';
import { Icon } from '../parts/icon.js';
import { Empty } from '../parts/page-head.js';
import { List } from '../parts/table.js';
import { act } from '../parts/basics.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { readFields, UserDrawer } from './user-drawer.js';

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
