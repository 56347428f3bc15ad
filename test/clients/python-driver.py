"""What PyMongo, as Debian has it, does on the wire transport; prints steps as steps.mjs does."""

import json
import re
import sys

import gridfs
import pymongo
from bson.son import SON

client = pymongo.MongoClient(sys.argv[1])
db = client.shop


def tell(step, outcome, why=""):
    print("STEP " + json.dumps({"step": step, "outcome": outcome, "why": str(why).split("\n")[0][:200]}))


def works(step, run):
    try:
        run()
        tell(step, "works")
    except Exception as error:
        tell(step, "fails", repr(error))


def refused(step, text, run):
    try:
        run()
        tell(step, "fails", "it was not refused")
    except Exception as error:
        tell(step, "refused" if re.search(text, str(error)) else "fails", error)


def same(actual, expected):
    if actual != expected:
        raise AssertionError("%r instead of %r" % (actual, expected))


def documents():
    db.posts.insert_many([{"_id": n, "n": n, "tags": ["a", "b"]} for n in range(300)])
    same(db.posts.update_many({"n": {"$lt": 10}}, {"$inc": {"n": 1000}}).modified_count, 10)
    same(db.posts.delete_one({"_id": 299}).deleted_count, 1)
    same(len(list(db.posts.find({"n": {"$gte": 10}}).sort("n", -1).batch_size(50))), 299)
    same(db.posts.find_one_and_update({"_id": 5}, {"$set": {"x": 1}}, return_document=True)["x"], 1)


def indexes():
    db.posts.create_index([("n", pymongo.ASCENDING)], unique=True)
    same(sorted(db.posts.index_information()), ["_id_", "n_1"])
    try:
        db.posts.insert_one({"n": 20})
    except pymongo.errors.DuplicateKeyError:
        return
    raise AssertionError("a duplicate was stored")


def aggregate():
    pipeline = [{"$match": {"n": {"$lt": 200}}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]
    same(list(db.posts.aggregate(pipeline)), [{"_id": None, "n": 190}])
    same(db.posts.count_documents({}), 299)


def places():
    db.places.create_index([("at", pymongo.GEOSPHERE)])
    db.places.insert_many([{"_id": n, "at": {"type": "Point", "coordinates": [n, 0]}} for n in range(20)])
    point = {"type": "Point", "coordinates": [3.2, 0]}
    same([doc["_id"] for doc in db.places.find({"at": {"$near": {"$geometry": point}}}).limit(2)], [3, 4])
    ring = [[[0.5, -1], [4.5, -1], [4.5, 1], [0.5, 1], [0.5, -1]]]
    within = {"at": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": ring}}}}
    same(db.places.count_documents(within), 4)
    same(len(list(db.places.find({"at": SON([("$nearSphere", [3, 0]), ("$maxDistance", 0.02)])}))), 3)


def files():
    stored = gridfs.GridFS(db)
    same(stored.get(stored.put(b"x" * 600000, filename="a")).read(), b"x" * 600000)


def administration():
    same(db.validate_collection("posts")["valid"], True)
    same("posts" in db.list_collection_names(), True)
    same(client.admin.command("hostInfo")["ok"], 1.0)
    same([index["name"] for index in db.posts.aggregate([{"$indexStats": {}}])], ["_id_", "n_1"])


def transaction():
    with client.start_session() as session:
        with session.start_transaction():
            db.posts.insert_one({"n": -1}, session=session)


works("insert, find, update, delete", documents)
works("indexes, DuplicateKeyError", indexes)
works("aggregate, count", aggregate)
works("places by $near, $nearSphere and a polygon", places)
works("GridFS", files)
works("validate_collection, hostInfo, $indexStats", administration)
works("transactions", transaction)
refused("change streams", "not available|not supported", lambda: next(db.posts.watch()))
