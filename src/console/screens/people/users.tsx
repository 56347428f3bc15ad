import { below, withQuery } from '../../api-paths.js';
import { moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { Commands, ofProject, quote } from '../../parts/commands.js';
import { Filters } from '../../parts/filters.js';
import { Icon } from '../../parts/icon.js';
import { Empty, PageHead } from '../../parts/page-head.js';
import { List, Pages } from '../../parts/table.js';
import { goTo, linkHere, place } from '../../routes.js';
import { mayChange, projectPath } from '../../session.js';
import { InviteUser } from './invite-user.js';
import { NewUser } from './new-user.js';
import { UserDrawer } from './user-drawer.js';

export function Users() {
  const { query } = place.value;
  const project = projectPath();
  const base = below(project, '/users');
  const page = Number(query.get('page') ?? 1) || 1;
  const [email, q] = [query.get('email') ?? '', query.get('q') ?? ''];
  const path = withQuery(base, { email, q, page: page > 1 ? page : null });
  const list = useLoad(path);
  const open = query.get('open');
  const close = (): void => goTo(linkHere({ open: null, new: null, invite: null }));
  return (
    <>
      <PageHead title="Users" count={list.data?.total}>
        {mayChange.value && (
          <>
            <a class="button" href={linkHere({ invite: '1' })}>
              Invite…
            </a>
            <a class="button primary" href={linkHere({ new: '1' })}>
              <Icon name="plus" />
              New user
            </a>
          </>
        )}
      </PageHead>
      <Filters
        fields={[
          { name: 'email', label: 'E-mail begins with' },
          { name: 'q', label: 'Id, or any text holds' },
        ]}
      />
      <List
        label="Users"
        of={list}
        keyOf={({ _id }) => _id}
        empty={email || q ? 'No user is like that.' : <NoUsers />}
        columns={[
          {
            name: 'E-mail',
            show: (user) => (
              <a class="opens" href={linkHere({ open: user._id })}>
                {user.email ?? user._id}
              </a>
            ),
          },
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
      <Pages of={list.data} names={['user', 'users']} />
      <Commands
        cli={`bsvc user list ${ofProject()}${email && ` --email ${quote(email)}`}${q && ` --search ${quote(q)}`}`}
        path={path}
      />
      {open && <UserDrawer key={open} base={base} id={open} onClose={close} onChange={list.reload} />}
      {query.get('new') && mayChange.value && (
        <NewUser
          base={base}
          onClose={close}
          onDone={() => {
            list.reload();
            close();
          }}
        />
      )}
      {query.get('invite') && mayChange.value && <InviteUser project={project} onClose={close} />}
    </>
  );
}

const NoUsers = () => (
  <Empty title="No users yet">
    <p>Apps sign users up with POST /api/userAuth/signup. You can also create and invite users here.</p>
  </Empty>
);
