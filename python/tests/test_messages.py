"""Messages by themselves."""

import array
import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import weakref

import numpy
import pytest

import tsuji
from tsuji.interfaces.builtin_interfaces.msg import Time
from tsuji.interfaces.geometry_msgs.msg import Polygon, Point32, PoseWithCovariance
from tsuji.interfaces.sensor_msgs.msg import CompressedImage, Image, LaserScan, PointCloud2, PointField
from tsuji.interfaces.std_msgs.msg import Empty, Float64MultiArray, Header, String

OWN = """\
uint8 FULL=100
string WORD="a word"
bool[3] flags
int8 small -3
wstring<=4 wide
string<=5 short "five"
float64[<=2] few [1.5]
builtin_interfaces/Time[] times
string[2] names
"""


@pytest.fixture(scope="module")
def own():
    return tsuji.load_text("own_msgs/msg/Own", OWN)


def everything(own):
    message = own(small=7, wide="wïde", few=[0.5, 2.5], names=["a", "b"])
    message.flags = [True, False, True]
    message.times = [Time(sec=1, nanosec=2), Time(sec=-3)]
    return message


def test_what_a_new_one_has(own):
    message = own()
    assert (message.small, message.wide, message.short, message.names) == (-3, "", "five", ["", ""])
    assert message.few.tolist() == [1.5] and message.flags.tolist() == [False] * 3 and message.times == []
    assert (own.FULL, own.WORD) == (100, "a word")
    assert Image().data.dtype == numpy.uint8 and len(Image().data) == 0
    assert PoseWithCovariance().covariance.tolist() == [0.0] * 36


def test_bytes_and_back(own):
    for message in (everything(own), own(), Empty(), String(data="héllo"), Header(frame_id="map", stamp=Time(sec=5))):
        there = type(message).from_bytes(message.to_bytes())
        assert there == message and there.to_bytes() == message.to_bytes()
        assert copy.copy(message) == message and copy.deepcopy(message) == message
        assert pickle.loads(pickle.dumps(message)) == message
        assert type(message).from_dict(message.to_dict()) == message


def test_messages_are_equal_by_what_they_say():
    a, b = String(data="x"), String(data="x")
    assert a == b and not a != b and a != String(data="y") and a != Header() and a != "x"
    assert Image(data=b"abc") != Image(data=b"abd") and Image(data=b"abc") != Image(data=b"ab")
    assert Polygon(points=[Point32(x=1.0)]) == Polygon(points=[Point32(x=1.0)]) != Polygon(points=[Point32(x=2.0)])
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_a_copy_shares_what_a_deep_copy_does_not():
    header = Header(frame_id="a")
    message = Image(header=header, data=[1, 2, 3])
    assert message.header is header and copy.copy(message).header is header
    deep = copy.deepcopy(message)
    deep.header.frame_id = "b"
    assert header.frame_id == "a"


def test_the_text_of_a_message():
    message = Image(header=Header(frame_id="cam"), height=2, data=bytes(100))
    text = repr(message)
    assert "frame_id='cam'" in text and "height=2" in text and "data=<100 uint8>" in text
    assert repr(Float64MultiArray(data=[1, 2.5])).endswith("data=[1.0, 2.5])")
    assert eval(repr(String(data="it's")), {"std_msgs": __import__("tsuji.interfaces.std_msgs.msg").interfaces.std_msgs}) == String(
        data="it's"
    )


def test_arrays_are_taken_however_they_come():
    picture = numpy.arange(12, dtype=numpy.uint8)
    for data in (picture, bytes(picture), bytearray(picture), memoryview(picture), array.array("B", picture), list(picture), range(12)):
        assert Image(data=data).data.tolist() == list(range(12))
    scan = LaserScan(ranges=[1, 2.5], intensities=numpy.array([1.0, 2.0], dtype=numpy.float64))
    assert scan.ranges.dtype == numpy.float32 and scan.intensities.tolist() == [1.0, 2.0]
    # An array of the right kind is kept as it is, and written when the message is.
    message = Image(data=picture)
    assert message.data is picture
    picture[0] = 99
    assert Image.from_bytes(message.to_bytes()).data[0] == 99
    # Of what is not without gaps a copy.
    assert Image(data=picture[::2]).data.tolist() == picture[::2].tolist()


def test_what_came_is_read_only():
    message = Image.from_bytes(Image(data=b"abc").to_bytes())
    with pytest.raises(ValueError):
        message.data[0] = 1
    message.data = message.data.copy()
    message.data[0] = 1
    assert bytes(Image.from_bytes(message.to_bytes()).data) == b"\1bc"


def test_big_endian():
    little = Header(frame_id="ab", stamp=Time(sec=1, nanosec=2)).to_bytes()
    assert little[:12] == bytes([0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0])
    big = bytes([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]) + b"ab\0"
    assert Header.from_bytes(big) == Header.from_bytes(little)
    scan = bytes([0, 0, 0, 0] + [0] * 12 + [0, 0, 0, 0] * 3) + bytes([0, 0, 0, 1]) + bytes.fromhex("3fc00000")
    data = bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]) + bytes(4) + bytes.fromhex("3ff8000000000000")
    assert scan and Float64MultiArray.from_bytes(data).data.tolist() == [1.5]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Image(height=-1), OverflowError, "height: -1; allowed: what uint32 holds"),
        (lambda: Image(height=1 << 32), OverflowError, "height: 4294967296; allowed"),
        (lambda: Image(height="1"), TypeError, "height: str; allowed: uint32"),
        (lambda: Image(height=1.5), TypeError, "height: float; allowed: uint32"),
        (lambda: Image(encoding=b"rgb8"), TypeError, "encoding: bytes; allowed: str"),
        (lambda: Image(header=Time()), TypeError, "header: a builtin_interfaces/msg/Time; allowed: a std_msgs/msg/Header"),
        (lambda: Image(header={"frame_id": "x"}), TypeError, "header: dict; allowed: std_msgs/msg/Header"),
        (lambda: Image(data="abc"), TypeError, "data: str; allowed: a sequence of uint8"),
        (lambda: Image(data=[1, 256]), OverflowError, r"data\[1\]: 256; allowed: what uint8 holds"),
        (lambda: Image(data=5), TypeError, "data: int; allowed: a sequence of uint8"),
        (lambda: Image(colour=1), AttributeError, 'has no field "colour"; allowed: header, height'),
        (lambda: PointCloud2(fields=[PointField(), 3]), TypeError, r"fields\[1\]: int; allowed: sensor_msgs/msg/PointField"),
        (lambda: PoseWithCovariance(covariance=[1.0]), ValueError, "covariance: 1 elements; allowed: 36"),
        (lambda: Image("rgb8"), TypeError, "positional"),
        (lambda: Image.from_bytes(b"\0\1\0\0abc"), ValueError, "header"),
        (lambda: Image.from_bytes(b""), ValueError, "4"),
        (lambda: Image.from_bytes(Image(data=b"x" * 100).to_bytes()[:-1]), ValueError, "data"),
        (lambda: tsuji.Message(), TypeError, "allowed: the class of a type"),
        (lambda: tsuji.load("no_msgs/msg/Nothing"), LookupError, "no_msgs/msg/Nothing"),
        (lambda: tsuji.load("not a name"), LookupError, "not a name"),
        (lambda: tsuji.load_text("own_msgs/msg/Bad", "int32"), LookupError, "own_msgs/msg/Bad"),
    ],
)
def test_what_is_wrong_is_told(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_bounds(own):
    for fields, text in (
        ({"short": "sixsix"}, "short: a text of 6 bytes; allowed: at most 5"),
        ({"wide": "fünfe"}, "wide: a text of 5 UTF-16 code units; allowed: at most 4"),
        ({"few": [1.0, 2.0, 3.0]}, "few: 3 elements; allowed: at most 2"),
        ({"names": ["one"]}, "names: 1 elements; allowed: 2"),
        ({"names": ["one", 2]}, r"names\[1\]: int; allowed: str"),
        ({"flags": [1, 0, 0]}, r"flags\[0\]: int; allowed: bool"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            own(**fields)
    # What is put into a list later is seen when the message is written.
    message = own(names=["a", "b"])
    message.names.append("c")
    with pytest.raises(ValueError, match="names: 3 elements; allowed: 2"):
        message.to_bytes()
    message = Polygon(points=[Point32()])
    message.points[0].x = 3.0
    message.points.append("no point")
    with pytest.raises(TypeError, match=r"points\[1\]: str; allowed: geometry_msgs/msg/Point32"):
        message.to_bytes()


def test_a_type_of_two_definitions_is_two():
    one = tsuji.load_text("own_msgs/msg/Twice", "int32 x\n")
    other = tsuji.load_text("own_msgs/msg/Twice", "int32 y\n")
    assert one is not other and one(x=1) != other(y=1)
    assert tsuji.load_text("own_msgs/msg/Twice", "int32 x\n") is one
    holder = tsuji.load_text("own_msgs/msg/Holder", "own_msgs/Twice it\n" + "=" * 80 + "\nMSG: own_msgs/Twice\nint32 x\n")
    assert holder(it=one(x=4)).it.x == 4
    with pytest.raises(TypeError, match="own_msgs/msg/Twice, of another definition"):
        holder(it=other())


def test_a_folder_of_definitions(tmp_path):
    (tmp_path / "my_msgs" / "msg").mkdir(parents=True)
    (tmp_path / "my_msgs" / "msg" / "Reading.msg").write_text("float64 value\nstd_msgs/Header header\n")
    tsuji.add_interface_folder(tmp_path)
    from tsuji.interfaces.my_msgs.msg import Reading

    assert Reading(value=1.5, header=Header(frame_id="x")).header.frame_id == "x"
    assert Reading.__module__ == "tsuji.interfaces.my_msgs.msg"
    with pytest.raises(ImportError):
        from tsuji.interfaces.my_msgs.msg import Missing  # noqa: F401


def test_a_part_is_not_the_whole(tmp_path):
    whole = Image.from_bytes(Image(header=Header(frame_id="cam"), data=bytes(5000)).to_bytes())
    assert len(whole.header.to_bytes()) == 20
    with tsuji.RecordingWriter(tmp_path / "parts.mcap") as writer:
        writer.write("/header", whole.header, time=1)
    [part] = tsuji.open(tmp_path / "parts.mcap")
    assert len(part.data) == 20 and part.message == whole.header and part.message is part.message


def test_truth_values_are_0_and_1(own):
    message = own(flags=numpy.array([2, 0, 255], numpy.uint8).view(bool))
    assert message.to_bytes()[4:7] == b"\1\0\1" and own.from_bytes(message.to_bytes()).flags.tolist() == [True, False, True]


def test_pictures_of_more_dimensions():
    picture = numpy.arange(24, dtype=numpy.uint8).reshape(2, 4, 3)
    assert Image(data=picture).data.tolist() == list(range(24))
    assert Image(data=picture).data.shape == (24,)


def test_deep_copies_can_be_written_to(own):
    class Mine(Image):
        pass

    came = Image.from_bytes(Image(header=Header(frame_id="a"), data=[1, 2, 3]).to_bytes())
    for made in (copy.deepcopy(came), pickle.loads(pickle.dumps(came))):
        made.data[0] = 9
        made.header.frame_id = "b"
        assert made.data.tolist() == [9, 2, 3]
    assert came.data.tolist() == [1, 2, 3] and came.header.frame_id == "a"
    assert type(copy.deepcopy(Mine(height=1))) is Mine and type(Mine.from_bytes(came.to_bytes())) is Mine


def test_what_a_programs_own_iterator_raises_stays():
    def broken():
        yield 1
        raise OSError(2, "not there", "a file")

    with pytest.raises(OSError) as raised:
        Image(data=broken())
    assert (raised.value.errno, raised.value.filename) == (2, "a file") and "in the field data" in raised.value.__notes__[0]
    with pytest.raises(UnicodeEncodeError):
        String(data="\ud800")
    for fields in ({"range_max": 1e300}, {"ranges": [1.0, 1e300]}):
        with pytest.raises(OverflowError, match="allowed: what float32 holds"):
            LaserScan(**fields)
    assert LaserScan(range_max=float("inf")).range_max == float("inf")


def test_what_nobody_holds_is_collected():
    message = Polygon(points=[])
    message.points.append(message)
    gone = weakref.ref(message)
    del message
    gc.collect()
    assert gone() is None


def test_a_large_message():
    message = CompressedImage(data=numpy.zeros(200_000_000, dtype=numpy.uint8))
    data = message.to_bytes()
    assert len(data) > 200_000_000 and len(CompressedImage.from_bytes(data).data) == 200_000_000


def test_a_field_that_is_set_while_it_is_read_for_the_first_time():
    # numpy is imported when an array is asked for first, and that runs whatever it likes.
    program = """
    import sys
    import tsuji
    from tsuji.interfaces.std_msgs.msg import UInt8MultiArray
    message = UInt8MultiArray(data=[1, 2, 3])
    class Meanwhile:
        def find_spec(self, name, path=None, target=None):
            if name == "numpy":
                message.data = [9, 9]
    sys.meta_path.insert(0, Meanwhile())
    assert "numpy" not in sys.modules
    print(bytes(message.data), bytes(message.data), len(message.to_bytes()))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    nine = repr(bytes([9, 9]))
    assert run.stdout.startswith(f"{nine} {nine} ")


def test_a_lent_array_has_a_most(tmp_path):
    with tsuji.Node("lends", interop="none", runtime_dir=str(tmp_path)) as node:
        publisher = node.publisher("scan", "sensor_msgs/msg/LaserScan")
        for count in (1 << 32, 1 << 29):
            with pytest.raises(ValueError, match="ranges: .* elements; allowed: at most 536870911"):
                publisher.loan(ranges=count)
